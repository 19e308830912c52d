"""
What git knows of a working tree, read from its own files.

Running git would cost 5 ms a look and heed whatever is configured for the user. Only three
things are read, all documented in gitrepository-layout(5): HEAD, a reference, a lock.
"""

from __future__ import annotations

from pathlib import Path


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
