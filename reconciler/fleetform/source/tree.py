"""
A tree of YAML on this machine: has it changed since it was looked at last?

`serve` asks every few seconds, so nothing is opened but git's few words on the commit: a
file's inode, size and time of change stand for its content, as they do for git and make. What
a change means is decided by the code that loads the configuration.

A tree that cannot be read is a value of its own and never an empty tree: an empty one would
mean that everything is to be removed. That includes a folder without its `environment.yaml`,
which is what is left of a file system that is not mounted.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_FILE = "environment.yaml"

_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """
    How a tree looked. Two that are equal stand for the same tree.

    Attributes:
        digest: Covers each file's name, inode, size and time of change.
        head: The commit that is checked out; empty outside git or before the first commit.
        files: How many files were looked at.
    """

    digest: str
    head: str
    files: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Why the configuration cannot be read, in one sentence; what was known stays in force."""

    reason: str


def fingerprint(
    root: Path, referenced: Iterable[str] = (), bases: Iterable[str] = ()
) -> Fingerprint | Unreadable:
    """
    Look at every YAML file below `root` and at the files that its documents name.

    Args:
        root: Folder with an `environment.yaml`.
        referenced: Paths relative to `root`, or absolute: files and folders that jobs take
            along. One that is missing is part of how the tree looks.
        bases: Folders beside `root`, relative to it, whose YAML belongs to the tree too.
    """
    try:
        if not (root / ENVIRONMENT_FILE).is_file():
            return Unreadable(f"there is no {ENVIRONMENT_FILE} in {root}")
        if is_changing(root):
            return Unreadable(f"a git command is running in {root}")
        looks = sorted(
            {
                *_yaml_files(str(root)),
                *_referenced_files(root, referenced),
                *(look for base in bases for look in _base_files(root / base)),
            }
        )
        commit = head(root)
    except OSError as error:
        return Unreadable(f"{error.filename or root} cannot be read: {error.strerror or error}")
    return Fingerprint(_digest(looks), commit, len(looks))


_Look = tuple[str, int, int, int]
"""Path, inode, size, time of change in ns."""


def _digest(looks: Iterable[_Look]) -> str:
    return hashlib.sha256(repr(list(looks)).encode("utf-8", "surrogateescape")).hexdigest()


def _yaml_files(folder: str) -> Iterator[_Look]:
    for entry in _entries(folder):
        # A link to a folder is not followed: it may lead around in a circle.
        if entry.is_dir(follow_symlinks=False):
            yield from _yaml_files(entry.path)
        elif entry.name.endswith(_SUFFIXES):
            yield _look(entry.path, entry.stat())


def _base_files(folder: Path) -> Iterator[_Look]:
    """Look at a base; one that is gone is a change, and the loader says what that means."""
    if folder.is_dir():
        yield from _yaml_files(str(folder))
    else:
        yield str(folder), 0, -1, 0


def _referenced_files(root: Path, referenced: Iterable[str]) -> Iterator[_Look]:
    for path in referenced:
        place = root / path
        try:
            yield _look(str(place), place.stat())
        except FileNotFoundError:
            yield str(place), 0, -1, 0
            continue
        if place.is_dir():
            yield from _everything(str(place))


def _everything(folder: str) -> Iterator[_Look]:
    for entry in _entries(folder):
        yield _look(entry.path, entry.stat(follow_symlinks=False))
        if entry.is_dir(follow_symlinks=False):
            yield from _everything(entry.path)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    # What is hidden is git's, an editor's or a tool's own.
    with os.scandir(folder) as entries:
        yield from (entry for entry in entries if not entry.name.startswith("."))


def _look(path: str, seen: os.stat_result) -> _Look:
    return path, seen.st_ino, seen.st_size, seen.st_mtime_ns


# What git knows of a working tree, read from its own files.
#
# Running git would cost 5 ms a look and heed whatever is configured for the user. Only three
# things are read, all documented in gitrepository-layout(5): HEAD, a reference, a lock.


def head(root: Path) -> str:
    """
    Return the id of the commit that is checked out around `root`, or nothing without one.

    Raises:
        OSError: There is a repository, and it cannot be read.
    """
    folder = _git_folder(root)
    if folder is None:
        return ""
    said = _read(folder / "HEAD")
    if not said.startswith("ref: "):
        return said
    return _resolve(folder, said.removeprefix("ref: "))


def is_changing(root: Path) -> bool:
    """
    Tell whether git is just changing the files: half a checkout is no commit.

    The lock is git's own and goes when it ends; a forgotten one is shown as the reason why
    the tree is not read.
    """
    folder = _git_folder(root)
    return folder is not None and (folder / "index.lock").exists()


def working_tree(root: Path) -> Path | None:
    """Return the folder that the repository around `root` is checked out in; None outside of git."""
    folders = (root.absolute(), *root.absolute().parents)
    return next((folder for folder in folders if (folder / ".git").exists()), None)


def _git_folder(root: Path) -> Path | None:
    folder = working_tree(root)
    if folder is None:
        return None
    found = folder / ".git"
    if found.is_file():
        # A linked working tree or a submodule says where its own folder is.
        return folder / _read(found).removeprefix("gitdir: ")
    return found


def _resolve(folder: Path, reference: str) -> str:
    """Look a reference up: its own file first, then the packed ones."""
    shared = folder
    if (folder / "commondir").exists():
        # Branches belong to all linked working trees together.
        shared = folder / _read(folder / "commondir")
    for place in (folder, shared):
        if (place / reference).is_file():
            return _read(place / reference)
    packed = shared / "packed-refs"
    for line in _read(packed).split("\n") if packed.exists() else ():
        commit, _, name = line.partition(" ")
        if name == reference:
            return commit
    return ""


def _read(path: Path) -> str:
    return path.read_text("utf-8", "surrogateescape").strip()
