"""
A working copy as one content: the same files give the same bytes, wherever and whenever.

What belongs to it, git says: what it tracks and what is new and not ignored, less what
`.fleetformignore` names in the same words. So an untracked data set is left out once it is ignored,
and a file that is not added yet is sent. Outside of git only what a person names is sent: the folder
may be a home with everything in it.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from fleetform.model.figures import counted
from fleetform.source.commits import GitRefused, has_git, run_git
from fleetform.source.tree import working_tree

IGNORE_FILE: Final = ".fleetformignore"

# What programs leave behind, where there is no git to say so.
_LEFT_OUT: Final = frozenset(
    {".git", "__pycache__", ".venv", ".ipynb_checkpoints", "node_modules", ".mypy_cache"}
)


class BundleRefused(Exception):
    """The working copy cannot be taken along. `advice` is what to do."""

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Bundle:
    """
    An archive and what it is of.

    Attributes:
        path: Where it lies; its maker removes it.
        sha256: Of its bytes.
        root: The folder that it is of.
        commit: That is checked out there, `+dirty` where files differ from it; empty outside git.
        files: How many it has.
        size_bytes: Of all contents.
        left_out: Links that lead out of the folder, and repositories inside of it.
        names: Of the files, relative to the folder.
        only: The paths that were named, where nothing else was sent; empty in a repository.
    """

    path: Path
    sha256: str
    root: Path
    commit: str
    files: int
    size_bytes: int
    left_out: tuple[str, ...]
    names: frozenset[str] = frozenset()
    only: tuple[str, ...] = ()


def make_bundle(
    folder: Path, into: Path, *, files_max: int, bytes_max: int, wanted: Sequence[Path] = ()
) -> Bundle:
    """
    Put the working copy around `folder` together, as a tar archive in the folder `into`.

    Args:
        folder: Anywhere in a repository, which is taken as a whole; or a folder outside of git, of
            which only `wanted` is taken.
        into: Where the archive is made.
        files_max: More files than that are refused.
        bytes_max: So are contents larger than that together.
        wanted: Files and folders below it that are taken whatever git ignores.

    Raises:
        BundleRefused: It is too large, a file cannot be read, or one of `wanted` is not there.
    """
    repository = working_tree(folder)
    root = (repository or folder).resolve()
    only = [_name_in(root, path) for path in wanted]
    try:
        around = () if repository is None else _names(root)
        names = sorted({*around, *(name for path in only for name in _below(root, path))})
        commit = _commit(root)
    except GitRefused as refusal:
        raise BundleRefused(refusal.message, refusal.advice) from refusal
    taken, left_out = _sorted_out(root, names)
    size = sum(root.joinpath(name).lstat().st_size for name in taken)
    if len(taken) > files_max or size > bytes_max:
        raise _too_large(root, taken, size, files_max, bytes_max)
    descriptor, made = tempfile.mkstemp(prefix=".bundle-", dir=into)
    path = Path(made)
    try:
        with os.fdopen(descriptor, "w+b") as file:
            _write(root, taken, file)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as problem:
        path.unlink()
        raise BundleRefused(
            f"{problem.filename or root} cannot be read: {problem.strerror}",
            f"make it readable, or name it in {IGNORE_FILE}",
        ) from problem
    except BaseException:
        path.unlink()
        raise
    return Bundle(
        path,
        sha256,
        root,
        commit,
        len(taken),
        size,
        left_out,
        frozenset(taken),
        () if repository else tuple(only),
    )


# -- what belongs to it -----------------------------------------------------------------------


def _name_in(root: Path, path: Path) -> str:
    """Return where a path lies below `root`; a link is itself, and not what it leads to."""
    place = path.parent.resolve() / path.name
    if not place.is_relative_to(root):
        raise BundleRefused(
            f"{path} lies outside of {root}, and a job's files lie below each other as they do here",
            "copy it there, or put data into a volume",
        )
    if not os.path.lexists(place):
        raise BundleRefused(f"{path} does not exist", "correct its name, or leave it out")
    return str(place.relative_to(root))


def _below(root: Path, name: str) -> Iterator[str]:
    path = root / name
    if path.is_symlink() or not path.is_dir():
        yield name
        return
    for below in _walked(path):
        yield os.path.normpath(f"{name}/{below}")


def _names(root: Path) -> Iterator[str]:
    if not has_git():
        if (root / IGNORE_FILE).exists():
            raise BundleRefused(
                f"{IGNORE_FILE} is read by git, which is not installed",
                "install git, or remove the file",
            )
        return _walked(root)
    return _listed(root)


def _listed(root: Path) -> Iterator[str]:
    ignored = [f"--exclude-from={root / IGNORE_FILE}"] if (root / IGNORE_FILE).is_file() else []

    def ask(*options: str) -> list[str]:
        return run_git(root, "ls-files", "-z", *options).split("\0")

    # To git a pattern means nothing for what it tracks, and its author means that too.
    kept_out = set(ask("--cached", "--ignored", *ignored)) if ignored else set()
    found = ask("--cached", "--others", "--exclude-standard", *ignored)
    return (name for name in found if name and name not in kept_out)


def _walked(root: Path) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        links = [name for name in folders if Path(folder, name).is_symlink()]
        for name in (*files, *links):
            yield os.path.relpath(f"{folder}/{name}", root)


def _sorted_out(root: Path, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Names that are taken, and those that cannot be; what is gone is neither."""
    taken: list[str] = []
    left_out: list[str] = []
    links: set[str] = set()
    for name in names:
        try:
            mode = (root / name).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if stat.S_ISLNK(mode) and not _stays_inside(root, name):
            left_out.append(name)
            links.add(name)
        elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
            taken.append(name)
        else:
            # A repository inside of this one is listed as a folder; a pipe has no content.
            left_out.append(name)
    return taken, tuple(left_out)


def _stays_inside(root: Path, name: str) -> bool:
    """Whether the host will take the link: see `agents.host.bundles`, which checks every link."""
    target = str((root / name).readlink())
    steps = [step for step in target.split("/") if step not in {"", "."}]
    up = next((number for number, step in enumerate(steps) if step != ".."), len(steps))
    return (
        bool(target)
        and not target.startswith("/")
        and ".." not in steps[up:]
        and up <= name.count("/")
    )


def _commit(root: Path) -> str:
    if not has_git() or not (root / ".git").exists():
        return ""
    try:
        commit = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD")
    except GitRefused:
        return ""
    return (
        f"{commit}+dirty"
        if run_git(root, "status", "--ignore-submodules=dirty", "--porcelain")
        else commit
    )


def _too_large(
    root: Path, taken: Sequence[str], size: int, files_max: int, bytes_max: int
) -> BundleRefused:
    largest = sorted(taken, key=lambda name: (-root.joinpath(name).lstat().st_size, name))[:3]
    named = ", ".join(
        f"{name} ({root.joinpath(name).lstat().st_size / 2**20:.1f} MB)" for name in largest
    )
    return BundleRefused(
        f"the working copy {root} has {counted(len(taken), 'file')} with {size / 2**20:.0f} MB, and"
        f" {files_max} files with {bytes_max / 2**20:.0f} MB are taken along at most",
        f"name what the run does not need in {IGNORE_FILE}, as in .gitignore, or put data into a"
        f" volume; the largest: {named}",
    )


# -- the archive ------------------------------------------------------------------------------


def _write(root: Path, names: Sequence[str], file: IO[bytes]) -> None:
    # One form for the same files: no owner, no time, and only whether a file is a program.
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            path = root / name
            entry = tarfile.TarInfo(name)
            if path.is_symlink():
                entry.type = tarfile.SYMTYPE
                entry.linkname = str(path.readlink())
                entry.mode = 0o777
                archive.addfile(entry)
                continue
            with path.open("rb") as content:
                seen = os.fstat(content.fileno())
                entry.size = seen.st_size
                entry.mode = 0o755 if seen.st_mode & 0o100 else 0o644
                archive.addfile(entry, content)
