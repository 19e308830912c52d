"""
A commit's files on disk, to read a configuration as it was or as it is proposed.

The repository's own objects are written out as they are: no checkout, so that no hook and no
filter of the repository runs, and the working tree stays as it is. Links are left out: what they
point to is not in the commit. Missing objects of a partial clone are not fetched.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from git import Repo
    from git.objects import Blob


COMMIT_BYTES_MAX = 1 << 30
"""One GiB: a repository of configuration is far below, and a disk full of data is not copied."""

_EXECUTABLE = 0o100755
_LINK = 0o120000


class CommitUnreadable(Exception):
    """A revision cannot be read; the sentence says why, `advice` what to do."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


def export_commit(root: Path, revision: str, into: Path) -> tuple[str, Path]:
    """
    Write the files of a commit below `into`, an empty folder.

    Args:
        root: A folder inside of the repository's working tree.
        revision: Whatever names a commit: `HEAD~1`, a branch, a tag, digits of its id.
        into: Gets the whole repository's files, so that what `root` refers to is there too.

    Returns:
        The commit's id, and the folder below `into` that stands for `root`.

    Raises:
        CommitUnreadable: There is no repository, no such commit, or it is too large.
    """
    repository, relative = _open(root)
    with repository:
        commit = _resolve(repository, revision)
        left = COMMIT_BYTES_MAX
        for item in commit.tree.traverse():
            if getattr(item, "type", "") != "blob":
                continue
            blob: Blob = item
            left -= blob.size
            if left < 0:
                raise CommitUnreadable(
                    f"commit {commit.hexsha[:12]} has more than {COMMIT_BYTES_MAX >> 30} GiB of files",
                    advice="check it out in a working tree of its own (`git worktree add`), and name"
                    " its folder",
                )
            _write(blob, into)
        return commit.hexsha, into / relative


def _open(root: Path) -> tuple[Repo, Path]:
    from git import InvalidGitRepositoryError, NoSuchPathError, Repo

    try:
        repository = Repo(root, search_parent_directories=True)
    except (InvalidGitRepositoryError, NoSuchPathError) as error:
        raise CommitUnreadable(
            f"{root} is in no git repository, so it has no commits",
            advice="name two folders, or two runs",
        ) from error
    # A repository may come from any source; see `spec.tree.git`.
    repository.git.update_environment(
        GIT_NO_LAZY_FETCH="1", GIT_ALLOW_PROTOCOL="", GIT_TERMINAL_PROMPT="0"
    )
    top = repository.working_tree_dir
    assert top is not None, "a configuration is in a working tree"
    return repository, root.resolve().relative_to(Path(top).resolve())


def _resolve(repository: Repo, revision: str):  # type: ignore[no-untyped-def]  # noqa: ANN202 -- git's own class
    from git import BadName, BadObject, GitCommandError

    try:
        return repository.commit(revision)
    except (BadName, BadObject, GitCommandError, ValueError, IndexError) as error:
        raise CommitUnreadable(
            f"`{revision}` names no commit here",
            advice="`git log --oneline` lists them; a run is named as `run/NAME`, an environment"
            " by its folder",
        ) from error


def _write(blob: Blob, into: Path) -> None:
    if blob.mode == _LINK:
        return
    # Git refuses such names as well, but a made-up object can bear any.
    path = into / blob.path
    if ".." in Path(blob.path).parts or Path(blob.path).is_absolute():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        blob.stream_data(file)
    if blob.mode == _EXECUTABLE:
        path.chmod(0o700)
