"""
The YAML files of a tree: which there are, and their bytes.

A configuration may come from an untrusted branch. So only plain files inside of it are opened: a link may
point anywhere, and a pipe would never end. A file that cannot be read is a finding and never treated as
absent, because an absent document means that its resources are to be removed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fleetform.spec.bounds import DEFAULT, Limits
from fleetform.spec.desired import FILE_NAME
from fleetform.spec.findings import Finding, Level, Place

__all__ = ["Inside", "LeadsOutError", "is_file", "is_folder", "open_below"]


# Opening what lies inside of a tree, and nothing else.
#
# Whether a path stays inside can only be said of one moment: a folder on the way may be a link in
# the next. So the way is gone from the root, a step at a time by descriptors, and no step follows
# a link. Where there is one that stays inside, the way to what it means is gone the same.

_FLAGS = os.O_RDONLY | os.O_CLOEXEC


class LeadsOutError(Exception):
    """A path that leads out of the tree through a link."""


def open_below(root: Path, path: str) -> int:
    """
    Open what lies at `path` below `root`, for reading; each `../` it begins with is a root above.

    Raises:
        LeadsOutError: A link on the way leads out of the tree.
        OSError: It cannot be opened.
    """
    # The folders of a base lie beside the environment's own, which whoever names them has judged.
    while path.startswith("../"):
        root, path = root / "..", path[3:]
    if ".." in path.split("/"):
        raise LeadsOutError
    try:
        return _open_plainly(root, path)
    except OSError as exc:
        # What the system says of a link where none may be; FreeBSD has EMLINK for it.
        if exc.errno not in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise
    real_root = os.path.realpath(root)
    real = os.path.realpath(root / path)
    if not real.startswith(real_root + os.sep):
        raise LeadsOutError
    return _open_plainly(Path(real_root), os.path.relpath(real, real_root))


def _open_plainly(root: Path, path: str) -> int:
    """Open step by step without following a link, so that nothing can be swapped on the way."""
    *folders, name = path.split("/")
    descriptor = _open_folder(root, folders)
    try:
        return _open_in(descriptor, name)
    finally:
        os.close(descriptor)


def _open_folder(root: Path, folders: Sequence[str]) -> int:
    descriptor = os.open(root, _FLAGS | os.O_DIRECTORY)
    for folder in folders:
        above = descriptor
        try:
            descriptor = os.open(folder, _FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        finally:
            os.close(above)
    return descriptor


def _open_in(descriptor: int, name: str) -> int:
    # Without O_NONBLOCK, opening a pipe waits for somebody to write to it.
    return os.open(name, _FLAGS | os.O_NONBLOCK | os.O_NOFOLLOW, dir_fd=descriptor)


class Inside:
    """
    Opens files of one configuration in the same folder, one after the other.

    The way to their folder is gone once for all of them: a descriptor of a folder means that
    folder, whatever its name leads to later.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder: str | None = None
        self._descriptor = -1

    def open(self, path: str) -> int:
        """
        Open the file at `path`; as `open_below`.

        Raises:
            LeadsOutError: A link on the way leads out of the tree.
            OSError: It cannot be opened.
        """
        folder, _, name = path.rpartition("/")
        if ".." in path.split("/"):
            return open_below(self._root, path)
        if folder != self._folder:
            self.close()
        try:
            if self._folder is None:
                self._descriptor = _open_folder(self._root, folder.split("/") if folder else [])
                self._folder = folder
            return _open_in(self._descriptor, name)
        except OSError:
            # A link, most likely. Where it leads is looked at step by step.
            return open_below(self._root, path)

    def close(self) -> None:
        """Give the folder back."""
        if self._folder is not None:
            os.close(self._descriptor)
            self._folder = None


def is_file(path: Path) -> bool:
    """
    Whether a plain file lies at `path`, links followed.

    Where one may not even look the answer is yes: whoever opens it then is told why it cannot
    be, and nothing is taken for absent that is only hidden.
    """
    return _has_mode(path, stat.S_ISREG)


def is_folder(path: Path) -> bool:
    """Whether a folder lies at `path`, with the same answer where one may not look."""
    return _has_mode(path, stat.S_ISDIR)


def _has_mode(path: Path, is_it: Callable[[int], bool]) -> bool:
    try:
        return is_it(path.stat().st_mode)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False


# Ten times the largest tree anybody has shown; a home folder given by mistake ends here.
FILES_MAX = 100_000
# As long as a hundred thousand documents of the usual size; nodes take some thirty times that.
BYTES_MAX = 64 * 2**20
# What is no document is looked at too, by its name. Folders of data have millions.
ENTRIES_MAX = 1_000_000
# Nobody's folders stand so deep in each other, and a path has an end (PATH_MAX is 4096).
DEPTH_MAX = 64
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
        seen: What the system said of each file, before anybody read it.
    """

    files: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    seen: dict[str, os.stat_result] = field(default_factory=dict)
    _entries: int = 0
    _bytes: int = 0

    @property
    def excess(self) -> str:
        """What there is too much of to go on; empty while there is not."""
        if len(self.files) > FILES_MAX:
            return f"There are more than {FILES_MAX} YAML files below this folder."
        if self._bytes > BYTES_MAX:
            return f"The YAML files below this folder have more than {BYTES_MAX} bytes."
        if self._entries > ENTRIES_MAX:
            return f"There are more than {ENTRIES_MAX} files and folders below this folder."
        return ""

    def add(self, entry: os.DirEntry[str], path: str) -> None:
        """Take a file up; what is longer than a file may be is not read as a whole."""
        self.files.append(path)
        seen = self.seen[path] = entry.stat()
        self._bytes += min(seen.st_size, DEFAULT.bytes_max)

    def count(self) -> None:
        """Count something that is there, whatever it is."""
        self._entries += 1


def walk(root: Path, *, prefix: str = "") -> Walk:
    """
    Find the documents' files below `root`, which is an existing folder.

    Paths begin with `prefix`: that of a base, as seen from the environment's folder.
    """
    found = Walk()
    real_root = os.path.realpath(root)
    _walk_folder(real_root, f"{prefix}/" if prefix else "", real_root, found)
    found.files.sort()
    if found.excess:
        found.unread.append(".")
        found.findings.append(
            finding(
                "tree-too-large",
                ".",
                f"{found.excess} None of them is read.",
                "Give the folder of one environment.",
            )
        )
        found.files.clear()
    return found


def _walk_folder(folder: str, prefix: str, real_root: str, found: Walk) -> None:
    try:
        with os.scandir(folder) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except OSError as exc:
        _cannot_read(prefix or ".", exc, found)
        return
    for entry in entries:
        found.count()
        if found.excess:
            return
        path = prefix + entry.name
        try:
            _walk_entry(entry, path, real_root, found)
        except OSError as exc:
            # Gone, or on a file system that does not say what its entries are.
            _cannot_read(path, exc, found)


def _walk_entry(entry: os.DirEntry[str], path: str, real_root: str, found: Walk) -> None:
    if entry.is_symlink():
        _walk_link(entry, path, real_root, found)
    elif entry.is_dir():
        if not entry.name.startswith("."):
            _walk_subfolder(entry, path, real_root, found)
    elif _is_wanted(path):
        found.add(entry, path)


def _walk_subfolder(entry: os.DirEntry[str], path: str, real_root: str, found: Walk) -> None:
    if path.count("/") >= DEPTH_MAX:
        found.unread.append(path)
        found.findings.append(
            finding(
                "tree-too-large",
                path,
                f"Folders are nested more than {DEPTH_MAX} deep; this one is not read.",
                "Look for a program that creates folders inside of folders.",
            )
        )
        return
    if os.path.lexists(f"{entry.path}/{FILE_NAME}"):
        found.findings.append(
            finding(
                "environment-elsewhere",
                f"{path}/{FILE_NAME}",
                "This folder is an environment of its own inside of another; its documents are not read.",
                "Move the folder out of the other environment, or remove this file.",
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
    if os.path.isdir(target):  # noqa: PTH112 -- Path's raises where a folder may not be entered
        # A folder inside of the tree is read where it lies; following links could go in circles.
        if is_inside:
            return
        if _is_wanted(path):
            _leads_out(path, found)
        else:
            # Data, or what a program has installed, and often git's to ignore: nobody reads there,
            # and a document that names a file behind it is refused for that.
            found.findings.append(_not_followed(path))
    elif _is_wanted(path):
        if not os.path.exists(target):  # noqa: PTH110 -- as above
            _cannot_read(
                path,
                FileNotFoundError(errno.ENOENT, "The target of the link does not exist"),
                found,
            )
        elif is_inside:
            found.add(entry, path)
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
    found.findings.append(_outside(path))


def _outside(path: str) -> Finding:
    return finding(
        "file-outside",
        path,
        "The link leads out of the configuration, so no commit contains its target.",
        "Put the file itself into the configuration.",
    )


def _not_followed(path: str) -> Finding:
    return finding(
        "file-outside",
        path,
        "The link leads to a folder outside of the configuration, whose documents are not read.",
        "If it has documents, put the folder itself into the configuration.",
        level=Level.NOTE,
    )


def _changed(path: str, detail: str) -> Finding:
    return finding("file-changed", path, detail, "Try again when no program writes to it.")


def _cannot_read(path: str, exc: OSError, found: Walk) -> None:
    found.unread.append(path)
    found.findings.append(unreadable(path, exc))


def read_file(
    root: Path,
    path: str,
    limits: Limits = DEFAULT,
    *,
    base: str = "",
    inside: Inside | None = None,
) -> bytes | Finding:
    """
    The bytes of a file of the tree, one more than allowed at most, or why there are none.

    What was a file of the tree when the tree was walked may be a link out of it by now, and so
    may any folder above it: the way is gone anew, and no step of it may leave the tree. With
    `base`, a folder that `path` begins with, the tree is that of this base. Whoever reads many
    files in order of path lends an `inside` of that tree.
    """
    try:
        if inside is not None:
            descriptor = inside.open(path)
        else:
            descriptor = open_below(root / base, path.removeprefix(f"{base}/"))
    except FileNotFoundError:
        return _changed(path, "The file was deleted while it was read.")
    except LeadsOutError:
        return _outside(path)
    except OSError as exc:
        return unreadable(path, exc)
    try:
        return _read_open(descriptor, path, limits.bytes_max + 1)
    except OSError as exc:
        return unreadable(path, exc)
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, path: str, size_max: int) -> bytes | Finding:
    before = os.fstat(descriptor)
    if not stat.S_ISREG(before.st_mode):
        return finding(
            "file-unreadable", path, "This is not a plain file.", "Remove it, or rename it."
        )
    data = b"".join(_chunks(descriptor, size_max))
    after = os.fstat(descriptor)
    is_whole = len(data) == min(after.st_size, size_max)
    if not is_whole or (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        return _changed(path, "The file changed while it was read.")
    return data


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
        f"{exc.strerror or exc}. Resources that it declares are unknown and stay unchanged.",
        "Make it readable for the user who runs fleetform.",
    )


def finding(code: str, path: str, detail: str, advice: str, level: Level = Level.ERROR) -> Finding:
    """A finding about a file as a whole."""
    # With the codes come all kinds, and a tree that can be read needs none of this.
    from fleetform.spec.findings import SUMMARIES

    return Finding(level, code, SUMMARIES[code], Place(path), detail, advice, path)
