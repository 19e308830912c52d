from __future__ import annotations

import os

from fleetform.lsp.index import scan

TASK = "type: task\nname: train\ncommands: [a]\n"


def test_only_what_changed_is_read_again(tmp_path):
    """By size and time; what is gone has no signature any more."""
    (tmp_path / "one.yaml").write_text(TASK)
    (tmp_path / "two.yaml").write_text(TASK)
    first = scan(tmp_path, {}, ())
    assert sorted(first.read) == ["one.yaml", "two.yaml"]
    assert scan(tmp_path, first.signatures, ()).read == {}
    (tmp_path / "one.yaml").write_text(TASK + "nodes: 2\n")
    (tmp_path / "two.yaml").unlink()
    later = scan(tmp_path, first.signatures, ())
    assert list(later.read) == ["one.yaml"]
    assert list(later.signatures) == ["one.yaml"]


def test_an_open_file_is_left_to_the_editor(tmp_path):
    """It is neither read nor known."""
    (tmp_path / "one.yaml").write_text(TASK)
    assert scan(tmp_path, {}, {"one.yaml"}) == ({}, {}, ())


def test_what_is_no_file_and_what_is_no_text_is_survived(tmp_path):
    """A pipe, bytes, a folder that is gone."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    found = scan(tmp_path, {}, ())
    assert all(read.declarations == () for read in found.read.values())
    assert scan(tmp_path / "gone", {}, ()) == ({}, {}, ())


def test_what_an_environment_extends_is_read_with_it(tmp_path):
    """By its path from the environment; a folder that may be no base is not even looked into."""
    own, base = tmp_path / "own", tmp_path / "base"
    for folder in (own, base):
        folder.mkdir()
    (base / "train.yaml").write_text(TASK)
    (own / "environment.yaml").write_text(
        "type: environment\nname: own\nuid: abcd\nextends: ../base\n"
        "patches: [{target: run/train, merge: {nodes: 2}}]\n"
    )
    found = scan(own, {}, ())
    assert [one.key.name for one in found.read["../base/train.yaml"].declarations] == ["train"]
    assert [one.key for one in found.read["environment.yaml"].mentions] == [("run", "train")]
    (own / "environment.yaml").write_text(
        "type: environment\nname: own\nuid: abcd\nextends: ../../..\n"
    )
    assert list(scan(own, {}, ()).read) == ["environment.yaml"]
