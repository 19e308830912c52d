"""
The YAML files of a tree: which there are, and their bytes.

A tree may come from anybody's branch. So nothing is opened that is not a plain file inside of
it: a link may point anywhere, and a pipe would never end. What cannot be read is a finding and
never an absence, because an absent document means that its resources are to be removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fleetform.spec.documents import DEFAULT, Limits
from fleetform.spec.findings import Finding, Level, Place
from fleetform.spec.identity import FILE_NAME

# Ten times the largest tree anybody has shown; a home folder given by mistake ends here.
FILES_MAX = 100_000
_SUFFIXES = (".yaml", ".yml")
# dstack's own names; other dot files are configuration of tools.
_DOT_FILES = (".dstack.yml", ".dstack.yaml")


@dataclass(slots=True)
class Walk:
    """
    Attributes:
        files: Paths relative to the root with forward slashes, sorted; `environment.yaml` of
            the root is not among them.
        unread: Paths whose documents cannot be told.
    """

    files: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def walk(root: Path) -> Walk:
    """Find the documents' files below `root`, which is an existing folder."""
    found = Walk()
    real_root = os.path.realpath(root)
    _walk_folder(real_root, "", real_root, found)
    found.files.sort()
    if len(found.files) > FILES_MAX:
        del found.files[FILES_MAX:]
        found.unread.append(".")
        found.findings.append(
            finding(
                "tree-too-large",
                ".",
                f"There are more than {FILES_MAX} YAML files below this folder.",
                "Give the folder of one environment.",
            )
        )
    return found


def _walk_folder(folder: str, prefix: str, real_root: str, found: Walk) -> None:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as exc:
        _cannot_read(prefix or ".", exc, found)
        return
    for entry in entries:
        path = prefix + entry.name
        if len(found.files) > FILES_MAX:
            return
        if entry.is_symlink():
            _walk_link(entry, path, real_root, found)
        elif entry.is_dir():
            if not entry.name.startswith("."):
                _walk_subfolder(entry, path, real_root, found)
        elif _is_wanted(path):
            found.files.append(path)


def _walk_subfolder(entry: os.DirEntry[str], path: str, real_root: str, found: Walk) -> None:
    if os.path.lexists(f"{entry.path}/{FILE_NAME}"):
        found.findings.append(
            finding(
                "environment-elsewhere",
                f"{path}/{FILE_NAME}",
                "This folder is an environment of its own inside of another; its documents are left alone.",
                "Move the folder beside the other environment, or remove this file.",
            )
        )
        found.unread.append(path)
        return
    _walk_folder(entry.path, f"{path}/", real_root, found)


def _walk_link(entry: os.DirEntry[str], path: str, real_root: str, found: Walk) -> None:
    if entry.name.startswith(".") and entry.name not in _DOT_FILES:
        return
    target = os.path.realpath(entry.path)
    is_inside = target == real_root or target.startswith(real_root + os.sep)
    if Path(target).is_dir():
        # A folder inside of the tree is read where it lies; following links could go in circles.
        if not is_inside:
            _leads_out(path, found)
    elif _is_wanted(path):
        if is_inside:
            found.files.append(path)
        else:
            _leads_out(path, found)


def belongs(path: str) -> bool:
    """
    Whether a plain file at this path of a tree is read as its documents.

    For files that are not there yet, such as what an editor has not saved. `environment.yaml`
    is read too, and on its own.
    """
    *folders, _ = path.split("/")
    return _is_wanted(path) and not any(folder.startswith(".") for folder in folders)


def _is_wanted(path: str) -> bool:
    name = path.rpartition("/")[2]
    if not name.endswith(_SUFFIXES) or path == FILE_NAME:
        return False
    return not name.startswith(".") or name in _DOT_FILES


def _leads_out(path: str, found: Walk) -> None:
    found.unread.append(path)
    found.findings.append(
        finding(
            "file-outside",
            path,
            "The link leads out of the tree, and what lies there is in no commit.",
            "Put the file itself into the tree.",
        )
    )


def _cannot_read(path: str, exc: OSError, found: Walk) -> None:
    found.unread.append(path)
    found.findings.append(unreadable(path, exc))


def read_file(root: Path, path: str, limits: Limits = DEFAULT) -> bytes | Finding:
    """The bytes of a file of the tree, one more than allowed at most, or why there are none."""
    try:
        # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
        descriptor = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return finding(
            "file-changed",
            path,
            "The file was there a moment ago and is gone.",
            "Load the tree again when nothing is writing to it.",
        )
    except OSError as exc:
        return unreadable(path, exc)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return finding(
                "file-unreadable", path, "This is not a plain file.", "Remove it, or rename it."
            )
        return b"".join(_chunks(descriptor, limits.bytes_max + 1))
    except OSError as exc:
        return unreadable(path, exc)
    finally:
        os.close(descriptor)


def _chunks(descriptor: int, size_max: int) -> Iterator[bytes]:
    left = size_max
    while left and (chunk := os.read(descriptor, left)):
        left -= len(chunk)
        yield chunk


def unreadable(path: str, exc: OSError) -> Finding:
    """The finding for a file that the system refuses to give."""
    return finding(
        "file-unreadable",
        path,
        f"{exc.strerror or exc}. What it declares is unknown, and is left as it is.",
        "Make it readable to whoever runs fleetform.",
    )


def finding(code: str, path: str, detail: str, advice: str, level: Level = Level.ERROR) -> Finding:
    """A finding about a file as a whole."""
    # With the codes come all kinds, and a tree that can be read needs none of this.
    from fleetform.spec.kinds.codes import SUMMARIES

    return Finding(level, code, SUMMARIES[code], Place(path), detail, advice, path)
