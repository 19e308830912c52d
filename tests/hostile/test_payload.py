"""What a document names under `files:`, where that was made to harm whoever reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetform.spec.tree import files, load_tree
from hostile.processor_time import processor_seconds
from unit.spec.trees import codes, load

TASK = "type: task\nname: train\ncommands: [python train.py]\n"


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ("x" * 300, "file-unreadable"),
        ('"a\\0b"', "bad-path"),
        ('"a\\nb"', "file-missing"),
        ("x/" * 1500 + "y", "file-missing"),
        ("link", "file-unreadable"),
        ("pipe", "bad-path"),
        ("device", "file-outside"),
        ("folder", "file-outside"),
    ],
)
def test_a_path_is_any_text(tmp_path: Path, entry: str, code: str):
    """It names nothing that can be read, and that is a finding."""
    (tmp_path / "link").symlink_to("link")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "out").symlink_to("/etc/passwd")
    assert codes(load(tmp_path, f"{TASK}files: [{entry}]\n")) == [code]


def test_files_of_holes_are_not_read(tmp_path: Path):
    """What they come to is known before, and nothing of the one too many is read."""
    for number in range(50):
        with (tmp_path / f"{number}.bin").open("wb") as file:
            file.truncate(2 * files.BYTES_MAX)
    names = ", ".join(f"{number}.bin" for number in range(50))
    with processor_seconds(5):
        loaded = load(tmp_path, f"{TASK}files: [{names}]\n")
    assert set(codes(loaded)) == {"files-too-large"}


def test_what_was_known_counts_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each run has its own bound, and what another has read already counts as well."""
    monkeypatch.setattr(files, "BYTES_MAX", 10)
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text("123456")
    both = "files: [a.txt, b.txt]\n"
    text = f"{TASK}files: [a.txt]\n---\n{TASK.replace('train', 'two')}{both}"
    loaded = load(tmp_path, f"{text}---\n{TASK.replace('train', 'three')}{both}")
    assert codes(loaded) == ["files-too-large"] * 2
    assert [str(key) for key in loaded.desired.resources] == ["run/train"]


CHANGES: dict[str, Callable[[Path], object]] = {
    "grows": lambda path: path.write_bytes(path.read_bytes() + b"more"),
    "is cut": lambda path: os.truncate(path, 12),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_changes_while_it_is_hashed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
):
    """A digest of half of one and half of another would be of no file that there ever was."""
    path = tmp_path / "data.bin"
    path.write_bytes(b"x" * 1000)
    read, inode = os.read, path.stat().st_ino

    def changed_read(descriptor: int, size: int) -> bytes:
        data = read(descriptor, min(size, 10))
        if os.fstat(descriptor).st_ino == inode:
            monkeypatch.setattr(os, "read", read)
            CHANGES[name](path)
        return data

    monkeypatch.setattr(os, "read", changed_read)
    assert codes(load(tmp_path, f"{TASK}files: [data.bin]\n")) == ["file-changed"]


def test_a_link_that_takes_a_files_place_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its way was judged while it was a file; when it is opened, it is judged again."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "secret").write_text("s3cret")
    load(tree, f"{TASK}files: [data.bin]\n")
    (tree / "data.bin").write_text("data")
    check = files.Files._check_link

    def checked(self: files.Files, full: str, named: str, root: str) -> None:
        check(self, full, named, root)
        (tree / "data.bin").unlink()
        (tree / "data.bin").symlink_to("../secret")

    monkeypatch.setattr(files.Files, "_check_link", checked)
    assert codes(load_tree(tree)) == ["file-outside"]
