"""What `files:` of a run names, and what becomes of YAML among it."""

from __future__ import annotations

import os

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.trees import codes, good, load, write

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


def run(name: str) -> ResourceKey:
    return ResourceKey("run", name)


def test_files_follow_content(tmp_path):
    """A file's digest is in the execution's; directories are expanded and sorted."""
    write(tmp_path, "runs/code/b.py", "b")
    write(tmp_path, "runs/code/a/a.py", "a")
    write(tmp_path, "runs/code/__pycache__/a.pyc", "x")
    (tmp_path / "runs/code/b.py").chmod(0o755)
    text = TASK + "files: [./code:src, ./code/b.py]\n"
    before = good(tmp_path, "", runs__t=text).resources[run("train")]
    assert [(entry["path"], entry["mode"]) for entry in before.document["files"]] == [
        ("code/b.py", 0o755),
        ("src/a/a.py", 0o644),
        ("src/b.py", 0o755),
    ]
    write(tmp_path, "runs/code/a/a.py", "changed")
    after = good(tmp_path, "").resources[run("train")]
    assert after.execution_digest != before.execution_digest


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("./missing.py", "file-missing"),
        ("../../etc/passwd:x", "not-supported"),
        ("/etc/passwd:x", "not-supported"),
        ("~/.ssh/id_rsa:x", "not-supported"),
        ("~/.ssh/id_rsa", "not-supported"),
        ("/etc/passwd", "not-supported"),
        ("./link:x", "file-outside"),
        ("./x.py:/x", "not-supported"),
        ("./x.py:~/x", "not-supported"),
        ("./x.py:../x", "not-supported"),
        ("./pipe", "bad-path"),
    ],
)
def test_files_that_cannot_be(tmp_path, entry, code):
    """A file that is missing, elsewhere or no file is a finding at its entry."""
    tree = tmp_path / "tree"
    write(tree, "x.py", "")
    (tree / "link").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe")
    loaded = load(tree, f"{TASK}files:\n  - {entry}\n")
    assert codes(loaded) == [code]
    assert (loaded.findings[0].place.line, loaded.findings[0].place.column) == (5, 5)


def test_payload_is_no_document(tmp_path):
    """YAML that a run carries along is data; where documents lie beside it, nothing is hidden."""
    files = {"conf__model": "optimizer: adam\nbad: [\n", "conf__other": "- 1\n"}
    assert good(tmp_path, f"{TASK}files: [./conf]\n", **files)
    loaded = load(tmp_path, f"{TASK}files: [.]\n")
    assert loaded.errors
