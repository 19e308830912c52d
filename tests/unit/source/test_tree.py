"""A tree's fingerprint: equal while nothing changed, and never made of what cannot be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from fleetform.source import tree as git
from fleetform.source.tree import Fingerprint, Unreadable, fingerprint


@pytest.fixture
def root(tmp_path) -> Path:
    root = tmp_path / "tree"
    (root / "runs").mkdir(parents=True)
    (root / "environment.yaml").write_text("type: environment\n")
    (root / "runs" / "train.yml").write_text("type: task\n")
    (root / "notes.txt").write_text("for people\n")
    return root


def run_git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    done = subprocess.run(
        ["git", "-C", str(root), *identity, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


class TestChanges:
    def test_a_tree_at_rest_looks_the_same(self, root) -> None:
        """Two looks without a change between them are equal."""
        before = fingerprint(root)
        assert isinstance(before, Fingerprint)
        assert before.files == 2
        assert fingerprint(root) == before

    @pytest.mark.parametrize(
        "change",
        [
            lambda root: (root / "runs" / "train.yml").write_text("type: tusk\n"),
            lambda root: (root / "runs" / "new.yaml").touch(),
            lambda root: (root / "runs" / "train.yml").unlink(),
            lambda root: (root / "runs" / "train.yml").rename(root / "runs" / "t.yml"),
            lambda root: (root / "runs").rename(root / "jobs"),
        ],
        ids=["edited", "added", "removed", "renamed", "moved"],
    )
    def test_every_change_of_yaml_shows(self, root, change) -> None:
        """Also one that keeps a file's length."""
        before = fingerprint(root)
        os.utime(root / "runs" / "train.yml", ns=(1, 1))
        before = fingerprint(root)
        change(root)
        assert fingerprint(root) != before

    def test_a_change_of_a_base_shows(self, root) -> None:
        """Its YAML, whether it is there at all, and nothing else that lies in it."""
        base = root.parent / "base"
        base.mkdir()
        (base / "fleet.yaml").write_text("type: fleet\n")
        before = fingerprint(root, bases=["../base"])
        assert isinstance(before, Fingerprint)
        assert before.files == 3
        (base / "output.log").touch()
        assert fingerprint(root, bases=["../base"]) == before
        (base / "fleet.yaml").write_text("type: fleets\n")
        changed = fingerprint(root, bases=["../base"])
        assert changed != before
        base.rename(root.parent / "gone")
        assert fingerprint(root, bases=["../base"]) not in {before, changed}

    def test_a_file_replaced_with_its_time_kept_shows(self, root) -> None:
        """`cp -p` and unpacking keep times; the inode tells."""
        train = root / "runs" / "train.yml"
        before, seen = fingerprint(root), train.stat()
        other = root / "runs" / "other"
        other.write_text("type: tesk\n")
        os.utime(other, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        other.replace(train)
        assert fingerprint(root) != before

    def test_what_is_not_yaml_does_not_count(self, root) -> None:
        """Notes, and what is hidden, are nobody's desired state."""
        before = fingerprint(root)
        (root / "notes.txt").write_text("more\n")
        (root / ".cache").mkdir()
        (root / ".cache" / "x.yaml").touch()
        assert fingerprint(root) == before

    def test_a_file_that_a_job_takes_along_counts(self, root) -> None:
        """Its content is part of a run's execution; so are a folder's and its absence."""
        (root / "code").mkdir()
        looks = [fingerprint(root, ["code", "train.py"])]
        (root / "train.py").write_text("1")
        looks.append(fingerprint(root, ["code", "train.py"]))
        (root / "code" / "model.py").write_text("2")
        looks.append(fingerprint(root, ["code", "train.py"]))
        (root / "train.py").unlink()
        looks.append(fingerprint(root, ["code", "train.py"]))
        assert len(set(looks)) == 4

    def test_a_link_in_a_circle_ends(self, root) -> None:
        """A link to a folder above is not walked."""
        (root / "runs" / "up").symlink_to("..")
        assert isinstance(fingerprint(root, ["runs"]), Fingerprint)


class TestUnreadable:
    def test_a_missing_tree_is_no_empty_tree(self, tmp_path) -> None:
        """A folder that is not there has nothing to say."""
        seen = fingerprint(tmp_path / "nowhere")
        assert isinstance(seen, Unreadable)
        assert "no environment.yaml" in seen.reason

    def test_a_folder_without_its_environment_is_no_empty_tree(self, root) -> None:
        """This is what is left of a file system that is not mounted."""
        (root / "environment.yaml").unlink()
        assert isinstance(fingerprint(root), Unreadable)

    def test_what_the_system_refuses_is_a_reason(self, root) -> None:
        """One folder that cannot be listed makes the tree unreadable."""
        (root / "runs" / "loop").symlink_to("loop")
        seen = fingerprint(root, ["runs/loop"])
        assert isinstance(seen, Unreadable)
        assert "runs/loop cannot be read" in seen.reason

    def test_git_at_work_is_waited_for(self, root) -> None:
        """Half a checkout is nobody's commit."""
        run_git(root, "init", "-q")
        (root / ".git" / "index.lock").touch()
        assert fingerprint(root) == Unreadable(f"a git command is running in {root}")


class TestHead:
    def test_outside_git_there_is_no_commit(self, tmp_path) -> None:
        """A plain folder is a tree as well."""
        assert git.head(tmp_path) == ""
        assert not git.is_changing(tmp_path)

    def test_it_is_what_git_says(self, root) -> None:
        """On a branch, packed, detached, in a linked working tree, below the top."""
        run_git(root, "init", "-q", "-b", "main")
        assert git.head(root) == ""
        run_git(root, "add", ".")
        run_git(root, "commit", "-q", "-m", "one")
        one = run_git(root, "rev-parse", "HEAD")
        assert git.head(root) == git.head(root / "runs") == one
        run_git(root, "pack-refs", "--all")
        assert git.head(root) == one
        run_git(root, "worktree", "add", "-q", "-b", "side", str(root.parent / "side"))
        assert git.head(root.parent / "side") == one
        run_git(root, "commit", "-q", "--allow-empty", "-m", "two")
        two = run_git(root, "rev-parse", "HEAD")
        assert (git.head(root), git.head(root.parent / "side")) == (two, one)
        run_git(root, "checkout", "-q", "--detach", one)
        assert git.head(root) == one

    def test_a_commit_alone_changes_the_fingerprint(self, root) -> None:
        """What is applied is recorded with its commit."""
        run_git(root, "init", "-q")
        before = fingerprint(root)
        run_git(root, "commit", "-q", "--allow-empty", "-m", "one")
        after = fingerprint(root)
        assert isinstance(before, Fingerprint)
        assert isinstance(after, Fingerprint)
        assert before.digest == after.digest
        assert before != after
