from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fleetform.agents.host.bundles import unpack
from fleetform.source.bundle import BundleRefused, make_bundle

MAX = {"files_max": 100, "bytes_max": 1 << 20}


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit, and something of each sort beside it."""
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    git(root, "init", "-q")
    (root / ".gitignore").write_text("*.ckpt\n")
    (root / "src/train.py").write_text("print()\n")
    (root / "run.sh").write_text("#!/bin/sh\n")
    (root / "run.sh").chmod(0o755)
    (root / "big.bin").write_text("0" * 1000)
    (root / "gone").write_text("")
    git(root, "add", ".")
    git(root, "commit", "-qm", "first")
    (root / "gone").unlink()
    (root / "model.ckpt").write_text("weights")
    (root / "new.py").write_text("x = 1\n")
    (root / "out").symlink_to("/etc/passwd")
    (root / "src/up").symlink_to("../new.py")
    return root


def names(path: Path) -> list[str]:
    with tarfile.open(path) as archive:
        return archive.getnames()


def test_what_git_tracks_or_does_not_ignore_is_taken(project: Path, tmp_path: Path) -> None:
    """New files too; neither what is ignored, nor what is gone, nor what leads out."""
    bundle = make_bundle(project / "src", tmp_path, **MAX)
    assert bundle.root == project
    assert names(bundle.path) == [
        ".gitignore",
        "big.bin",
        "new.py",
        "run.sh",
        "src/train.py",
        "src/up",
    ]
    assert bundle.left_out == ("out",)
    assert bundle.commit.endswith("+dirty")
    assert bundle.files == 6


def test_fleetformignore_leaves_out_what_git_tracks(project: Path, tmp_path: Path) -> None:
    """In git's own words, for what is tracked as well."""
    (project / ".fleetformignore").write_text("*.bin\n/new.py\nsrc/up\n")
    found = names(make_bundle(project, tmp_path, **MAX).path)
    assert found == [".fleetformignore", ".gitignore", "run.sh", "src/train.py"]


def test_a_clean_working_copy_names_its_commit(project: Path, tmp_path: Path) -> None:
    """Without `+dirty`, so that anybody can have the same files."""
    git(project, "add", "-A")
    git(project, "commit", "-qm", "second")
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=project, check=True, capture_output=True, text=True
    )
    assert make_bundle(project, tmp_path, **MAX).commit == head.stdout.strip()


@pytest.mark.parametrize("has_git", [True, False])
def test_outside_of_git_only_what_is_named_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_git: bool
) -> None:
    """The folder may be a home: its other files are neither sent nor looked at."""
    folder = tmp_path / "plain"
    (folder / "lib/__pycache__").mkdir(parents=True)
    for name in ("a.py", "lib/b.py", "lib/__pycache__/b.pyc", "secret"):
        (folder / name).write_text("")
    (folder / "closed").mkdir(mode=0o000)
    if not has_git:
        monkeypatch.setattr(shutil, "which", lambda _name: None)
    bundle = make_bundle(folder, tmp_path, wanted=[folder / "a.py", folder / "lib"], **MAX)
    assert (names(bundle.path), bundle.commit) == (["a.py", "lib/b.py"], "")
    assert bundle.only == ("a.py", "lib")


def test_what_is_named_is_taken_although_git_ignores_it(project: Path, tmp_path: Path) -> None:
    """A person who names a file means it."""
    (project / "best.ckpt").write_text("")
    bundle = make_bundle(project, tmp_path, wanted=[project / "best.ckpt"], **MAX)
    assert "best.ckpt" in names(bundle.path)
    assert bundle.only == ()


def test_what_cannot_be_taken_is_refused(tmp_path: Path) -> None:
    """A name that leads nowhere, and a file that lies outside of the folder."""
    folder = tmp_path / "plain"
    folder.mkdir()
    (tmp_path / "other.py").write_text("")
    for wrong, why in (("absent.py", "does not exist"), ("../other.py", "lies outside of")):
        with pytest.raises(BundleRefused, match=why):
            make_bundle(folder, tmp_path, wanted=[folder / wrong], **MAX)


def test_what_is_too_large_is_refused_with_the_largest(project: Path, tmp_path: Path) -> None:
    """The advice names what to leave out; nothing is left behind."""
    before = set(tmp_path.iterdir())
    with pytest.raises(BundleRefused, match="MB") as refused:
        make_bundle(project, tmp_path, files_max=100, bytes_max=500)
    assert "big.bin" in refused.value.advice
    assert ".fleetformignore" in refused.value.advice
    assert set(tmp_path.iterdir()) == before


_NAME = st.text("abc", min_size=1, max_size=2)
_TREE = st.dictionaries(
    st.lists(_NAME, min_size=1, max_size=3).map("/".join),
    st.tuples(st.binary(max_size=20), st.booleans()),
    max_size=6,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tree=_TREE, order=st.randoms())
def test_the_same_files_are_the_same_bundle(tmp_path_factory, tree, order) -> None:
    """Whatever the order, times and folders; and what is unpacked is what was there."""
    digests = set()
    for seconds in (0, 1_700_000_000):
        root = tmp_path_factory.mktemp("copy")
        source, into, out = root / "source", root / "into", root / "out"
        for folder in (source, into, out):
            folder.mkdir()
        items = list(tree.items())
        order.shuffle(items)
        written = {}
        for name, (content, is_program) in items:
            path = source / name
            if any(above.is_file() for above in path.parents) or path.is_dir():
                continue
            if any(other.startswith(f"{name}/") or name.startswith(f"{other}/") for other in tree):
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if is_program else 0o600)
            os.utime(path, (seconds, seconds))
            written[name] = content
        bundle = make_bundle(source, into, wanted=[source], **MAX)
        digests.add(bundle.sha256)
        unpack(str(bundle.path), str(out))
        found = {
            str(path.relative_to(out)): path.read_bytes()
            for path in out.rglob("*")
            if path.is_file()
        }
        assert found == written
    assert len(digests) == 1
