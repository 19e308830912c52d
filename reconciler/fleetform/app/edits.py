"""
What is to be written into the files of a tree, and writing it: all of it or nothing.

Another process may have a file open meanwhile. It is written only where it is as it was read, and
what was written before another could not be is taken back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import EditProblem
from fleetform.source.commits import (
    Committed,
    GitRefused,
    changed_files,
    commit,
    commit_on_branch,
    current_branch,
    ignored_files,
    push,
    require_committable,
)
from fleetform.spec.syntax.files import FileChanged, create_file, remove_file, replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import Loaded, ResourceKey
__all__ = [
    "Committed",
    "Edits",
    "FileEdit",
    "commit_edits",
    "propose_edits",
    "push_branch",
    "push_unpushed",
    "refuse_unfinished",
    "write_edits",
]


@dataclass(frozen=True, slots=True)
class FileEdit:
    """
    One file of the configuration, by its path relative to it.

    `before` is None for one that is new, `after` for one that goes.
    """

    path: str
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True)
class Edits:
    """
    What is to be written, and which resources that is about.

    `loaded` is the configuration as it will be. `files` are in order of path; empty: all is so already.
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
        EditProblem: Another process has changed one meanwhile; every file is as it was before.
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


# Commits edits of a configuration, after writing them or instead of it.
# On the branch that is checked out the files are written and committed. On a new branch only the
# commit is made: the user who proposes a change keeps the files as they are.


@contextlib.contextmanager
def _refusals(outcome: str = "", advice: str = "") -> Iterator[None]:
    """Raise what git refuses as a problem with the edit; `outcome` says what was done before."""
    try:
        yield
    except GitRefused as refusal:
        raise EditProblem(f"{refusal.message}{outcome}", refusal.advice or advice) from refusal


def commit_edits(workspace: Workspace, edits: Edits, message: str) -> Committed:
    """
    Write the edits and commit them, nothing else with them.

    Raises:
        EditProblem: A file has uncommitted changes, or git refuses. In the second case
            the files are written, as the message says.
    """
    with _refusals("; nothing was written"):
        # Before anything is written: of a file that is gone git would not say whether it is its.
        files = [_file(workspace, edit.path) for edit in _committed(workspace, edits)]
        _refuse_uncommitted(workspace, edits)
        require_committable(workspace.root, files)
    write_edits(workspace.root, edits)
    advice = "correct what git reports, then commit them"
    with _refusals("; the files are written and not committed", advice):
        return commit(workspace.root, files, message)


def propose_edits(workspace: Workspace, edits: Edits, message: str, branch: str) -> Committed:
    """
    Commit the edits on a new branch; the working tree stays as it is.

    Raises:
        EditProblem: As for `commit_edits`; nothing was written in either case.
    """
    with _refusals("; nothing was written"):
        _refuse_uncommitted(workspace, edits)
        files = {_file(workspace, edit.path): edit.after for edit in _committed(workspace, edits)}
        return commit_on_branch(workspace.root, files, message, branch)


def push_unpushed(workspace: Workspace, remote: str) -> tuple[str, str]:
    """
    Push the branch that is checked out, on which all is committed; returns its name and the remote's.

    A push that failed is repeated by the same command, for which nothing is left to write.

    Raises:
        EditProblem: git refuses.
    """
    with _refusals():
        branch = current_branch(workspace.root)
    return branch, push_branch(workspace, branch, remote)


def push_branch(workspace: Workspace, branch: str, remote: str) -> str:
    """Push a branch; returns the remote's name."""
    advice = f"`git push -u {remote or 'origin'} {branch}` tries again"
    with _refusals("; the commit was created and not pushed", advice):
        return push(workspace.root, branch, remote)


def refuse_unfinished(workspace: Workspace, edits: Edits) -> None:
    """
    Refuse to call a thing committed that only stands in a file: git may have refused it before.

    Raises:
        EditProblem: A file in which it stands has uncommitted changes.
    """
    files = [_file(workspace, file) for file in edits.looked_at]
    with _refusals():
        changed = changed_files(workspace.root, files)
    if changed:
        name = changed[0].relative_to(workspace.root)
        raise EditProblem(
            f"{name} has that value already, and has uncommitted changes",
            f"look at `git diff {name}`, then `git commit {name}`",
        )


def _file(workspace: Workspace, path: str) -> Path:
    """Return the file that is written: for a link within the configuration its target, as git has it."""
    named = workspace.root / path
    if not named.is_symlink():
        return named
    return workspace.root / os.path.relpath(named.resolve(), workspace.root.resolve())


def _committed(workspace: Workspace, edits: Edits) -> list[FileEdit]:
    """Those that are git's to know: an experiment's document is not, and goes without it."""
    files = {edit.path: _file(workspace, edit.path) for edit in edits.files}
    ignored = ignored_files(workspace.root, [*files.values()])
    return [edit for edit in edits.files if files[edit.path] not in ignored]


def _refuse_uncommitted(workspace: Workspace, edits: Edits) -> None:
    """Unfinished edits of the same file would be committed under fleetform's message."""
    there = [
        _file(workspace, edit.path)
        for edit in _committed(workspace, edits)
        if edit.before is not None
    ]
    changed = changed_files(workspace.root, there)
    if changed:
        raise GitRefused(
            f"{changed[0].relative_to(workspace.root)} has uncommitted changes",
            "commit them first, or leave out --commit",
        )
