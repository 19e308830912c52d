"""
What is to be written into the files of a tree, and writing it: all of it or nothing.

Somebody else may have a file open meanwhile. It is written only where it is as it was read, and
what was written before another could not be is taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import EditProblem
from fleetform.spec.edit import FileChanged, create_file, remove_file, replace_file

if TYPE_CHECKING:
    from fleetform.spec.desired import Loaded, ResourceKey

__all__ = ["Edits", "FileEdit", "write_edits"]


@dataclass(frozen=True, slots=True)
class FileEdit:
    """
    One file of the tree, by its path relative to it.

    `before` is None for one that is new, `after` for one that goes.
    """

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Edits:
    """
    What is to be written, and which resources that is about.

    `loaded` is the tree as it will be. `files` are in order of path; empty: all is so already.
    `looked_at` are the files in which it would be written, whether it stands there or not.
    """

    files: tuple[FileEdit, ...]
    touched: tuple[ResourceKey, ...]
    loaded: Loaded
    looked_at: tuple[str, ...] = ()


def write_edits(root: Path, edits: Edits) -> None:
    """
    Write all files, or none.

    Raises:
        EditProblem: Somebody else has changed one meanwhile; every file is as it was before.
    """
    for edit in edits.files:
        if _content(root / edit.path) != edit.before:
            raise _changed(edit.path)
    written: list[FileEdit] = []
    try:
        for edit in edits.files:
            _write(root / edit.path, edit.before, edit.after)
            written.append(edit)
    except (FileChanged, FileExistsError) as problem:
        _take_back(root, written)
        raise _changed(edit.path) from problem
    except BaseException:
        _take_back(root, written)
        raise


def _take_back(root: Path, written: Sequence[FileEdit]) -> None:
    for edit in reversed(written):
        _write(root / edit.path, edit.after, edit.before)


def _write(path: Path, before: bytes | None, after: bytes | None) -> None:
    if before is None:
        assert after is not None, "a file that does not exist cannot be removed"
        create_file(path, after)
    elif after is None:
        remove_file(path, before)
    else:
        replace_file(path, before, after)


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _changed(file: str) -> EditProblem:
    return EditProblem(
        f"{file} was changed by another process at the same time; nothing was written",
        "run the command again",
    )
