"""A commit on disk: its files as they are, without a checkout."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fleetform.source.export import CommitUnreadable, export_commit


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of an environment in a folder of a repository."""
    folder = tmp_path / "repository"
    (folder / "lab").mkdir(parents=True)
    git(folder, "init", "-q")
    (folder / "lab" / "a.yaml").write_text("one: 1\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("/etc/passwd")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    (folder / "lab" / "a.yaml").write_text("two: 2\n")
    git(folder, "commit", "-qam", "two")
    return folder


def test_a_commit_is_written_as_it_was(repository: Path, tmp_path: Path) -> None:
    """The folder that was asked about is found again; links are left out, modes are kept."""
    into = tmp_path / "out"
    into.mkdir()
    commit, root = export_commit(repository / "lab", "HEAD~1", into)
    assert len(commit) == 40
    assert (root / "a.yaml").read_text() == "one: 1\n"
    assert os.access(into / "run.sh", os.X_OK)
    assert not (into / "link").exists()
    assert (repository / "lab" / "a.yaml").read_text() == "two: 2\n"


def test_nothing_of_the_repositorys_own_runs(repository: Path, tmp_path: Path) -> None:
    """A filter and a hook that the repository configures are not started."""
    proof = tmp_path / "ran"
    (repository / ".gitattributes").write_text("* filter=bad\n")
    git(repository, "config", "filter.bad.smudge", f"touch {proof}")
    git(repository, "config", "core.fsmonitor", f"touch {proof}")
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {proof}\n")
    hook.chmod(0o755)
    into = tmp_path / "out"
    into.mkdir()
    export_commit(repository, "HEAD", into)
    assert not proof.exists()


@pytest.mark.parametrize("revision", ["nope", "HEAD~7", "--all", "HEAD:lab", ""])
def test_what_names_no_commit_is_refused(repository: Path, tmp_path: Path, revision: str) -> None:
    """With the revision in the sentence, and what to write instead."""
    with pytest.raises(CommitUnreadable, match="names no commit") as refused:
        export_commit(repository, revision, tmp_path)
    assert "git log" in refused.value.advice


def test_outside_of_git_is_said(tmp_path: Path) -> None:
    """There are no commits to compare."""
    with pytest.raises(CommitUnreadable, match="no git repository"):
        export_commit(tmp_path, "HEAD", tmp_path)
