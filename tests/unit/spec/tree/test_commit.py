"""Whether one commit was made from another, as the repository around a tree knows."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fleetform.spec.tree.commit import is_ancestor


def git(root: Path, *arguments: str) -> str:
    """Run git as nobody in particular; returns what it prints."""
    who = {
        f"GIT_{role}_{what}": "a@b"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return subprocess.run(
        ["git", *arguments],
        cwd=root,
        env={**os.environ, **who},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()


def commit(root: Path) -> str:
    git(root, "commit", "-q", "--allow-empty", "-m", "one more")
    return git(root, "rev-parse", "HEAD")


def test_an_older_commit_is_told_from_one_beside(tmp_path: Path) -> None:
    """The same is not older, nor one of another branch; what this clone lacks is not known."""
    git(tmp_path, "init", "-q", "-b", "main")
    first, second = commit(tmp_path), commit(tmp_path)
    git(tmp_path, "checkout", "-q", "-b", "beside", first)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "another")
    other = git(tmp_path, "rev-parse", "HEAD")
    assert is_ancestor(tmp_path, first, second)
    for older, newer in ((second, first), (first, first), (other, second), ("f" * 40, second)):
        assert not is_ancestor(tmp_path, older, newer)
    assert not is_ancestor(tmp_path.parent / "none", first, second)
