"""The commit that a tree is of, and whether it was made from another."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from fleetform.spec.tree.git import is_ancestor
from unit.spec.trees import good

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


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


def test_commit(tmp_path):
    """The commit is git's, with `+dirty` when a file differs; empty outside of git."""
    assert good(tmp_path, TASK).commit == ""
    git(tmp_path, "init", "-q")
    assert good(tmp_path, TASK).commit == ""
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "x")
    clean = good(tmp_path, TASK).commit
    assert len(clean) == 40
    assert good(tmp_path, TASK + "priority: 1\n").commit == f"{clean}+dirty"


def test_commit_runs_nothing_of_the_repository(tmp_path):
    """Neither hooks nor the file system monitor of a repository are started."""
    git(tmp_path, "init", "-q")
    evil = tmp_path / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    git(tmp_path, "config", "core.fsmonitor", str(evil))
    git(tmp_path, "config", "core.hooksPath", str(tmp_path))
    (tmp_path / "post-index-change").symlink_to(evil)
    good(tmp_path, TASK)
    assert not (tmp_path / "ran").exists()
