from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fleetform.source.commits import (
    GitRefused,
    changed_files,
    commit,
    commit_on_branch,
    ignored_files,
    push,
)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One commit, one file that is staged, one that is changed."""
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "ada")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "ada@example.org")
    root = tmp_path / "repository"
    (root / "lab").mkdir(parents=True)
    git(root, "init", "-q", "-b", "main")
    for name in ("lab/one.yaml", "lab/two.yaml", "lab/three.yaml"):
        (root / name).write_text("a\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "lab/two.yaml").write_text("staged\n")
    git(root, "add", "lab/two.yaml")
    (root / "lab/three.yaml").write_text("changed\n")
    return root


def test_a_commit_has_the_files_and_nothing_else(repository: Path) -> None:
    """What was staged stays staged, what was changed stays changed; new and gone files too."""
    lab = repository / "lab"
    (lab / "one.yaml").unlink()
    (lab / "new.yaml").write_text("new\n")
    made = commit(lab, [lab / "one.yaml", lab / "new.yaml"], "edit")
    assert made.branch == "main"
    assert git(repository, "rev-parse", "HEAD") == made.commit
    named = git(repository, "show", "--name-status", "--format=%an %s", "HEAD").splitlines()
    assert named == ["ada edit", "", "A\tlab/new.yaml", "D\tlab/one.yaml"]
    assert git(repository, "diff", "--cached", "--name-only") == "lab/two.yaml"
    assert git(repository, "diff", "--name-only") == "lab/three.yaml"


def test_a_new_branch_moves_nothing_here(repository: Path) -> None:
    """One commit more than the last one, with these files."""
    lab = repository / "lab"
    before = git(repository, "status", "--porcelain")
    made = commit_on_branch(
        lab,
        {lab / "one.yaml": b"b\n", lab / "new.yaml": b"n\n", lab / "three.yaml": None},
        "edit",
        "try",
    )
    assert made.branch == "try"
    assert git(repository, "status", "--porcelain") == before
    assert git(repository, "rev-parse", "try~1") == git(repository, "rev-parse", "main")
    named = git(repository, "show", "--name-status", "--format=%an %s", "try").splitlines()
    assert sorted(named[2:]) == ["A\tlab/new.yaml", "D\tlab/three.yaml", "M\tlab/one.yaml"]
    assert git(repository, "show", "try:lab/one.yaml") == "b"


def test_a_merge_that_is_under_way_is_not_cut_short(repository: Path) -> None:
    """A commit of some files in the middle of it would have one parent too few."""
    head = git(repository, "rev-parse", "HEAD")
    (repository / ".git/MERGE_HEAD").write_text(f"{head}\n")
    with pytest.raises(GitRefused, match="a merge is under way"):
        commit(repository, [repository / "lab/one.yaml"], "edit")
    assert git(repository, "rev-parse", "HEAD") == head


def test_nothing_is_committed_where_the_index_cannot_be_written(repository: Path) -> None:
    """Another git is at work: its commit and ours would not know of each other."""
    head = git(repository, "rev-parse", "HEAD")
    (repository / ".git/index.lock").touch()
    with pytest.raises(GitRefused, match="another git command is running"):
        commit(repository, [repository / "lab/one.yaml"], "edit")
    assert git(repository, "rev-parse", "HEAD") == head


def test_line_ends_are_as_git_add_would_have_them(repository: Path) -> None:
    """The attributes of a path hold, and the file is not shown as changed afterwards."""
    (repository / ".gitattributes").write_text("*.yaml text\n")
    one = repository / "lab/one.yaml"
    one.write_bytes(b"b\r\n")
    commit(repository, [one], "edit")
    assert git(repository, "show", "HEAD:lab/one.yaml") == "b"
    assert "one.yaml" not in git(repository, "status", "--porcelain")


@pytest.mark.parametrize("branch", ["main", "a..b", "-x"])
def test_a_branch_that_is_there_or_cannot_be_is_refused(repository: Path, branch: str) -> None:
    """Nobody's branch is moved."""
    with pytest.raises(GitRefused, match="branch") as refused:
        commit_on_branch(repository, {repository / "lab/one.yaml": b"b\n"}, "edit", branch)
    assert refused.value.advice == "choose another name"


def test_files_that_somebody_works_on_are_told(repository: Path) -> None:
    """Staged, changed or unknown to git; and ignored ones apart."""
    lab = repository / "lab"
    (lab / ".gitignore").write_text("*.tmp\n")
    (lab / "x.tmp").write_text("")
    files = [lab / f"{name}.yaml" for name in ("one", "two", "three")]
    assert changed_files(lab, files) == (lab / "two.yaml", lab / "three.yaml")
    assert ignored_files(lab, [*files, lab / "x.tmp"]) == {lab / "x.tmp"}


def test_a_branch_is_pushed_where_git_says(repository: Path, tmp_path: Path) -> None:
    """To the only remote; without one that is told."""
    with pytest.raises(GitRefused, match="no remote"):
        push(repository, "main")
    git(tmp_path, "init", "-q", "--bare", "theirs")
    git(repository, "remote", "add", "theirs", str(tmp_path / "theirs"))
    assert push(repository, "main") == "theirs"
    assert git(tmp_path / "theirs", "rev-parse", "main") == git(repository, "rev-parse", "main")
    with pytest.raises(GitRefused, match="no branch"):
        push(repository, "")


def test_without_git_or_a_repository_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what to do instead."""
    with pytest.raises(GitRefused, match="no git repository"):
        commit(tmp_path, [], "edit")
    git(tmp_path, "init", "-q")
    with pytest.raises(GitRefused, match="no commit yet"):
        changed_files(tmp_path, [])
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(GitRefused, match="not installed"):
        commit(tmp_path, [], "edit")
