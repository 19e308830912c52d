"""A directory that is a volume bears the mark of whose it is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from fleetform.agents.host import volumes
from fleetform.agents.protocol.messages import MakeVolume, RemoveVolume

MAKING = """
import sys
from fleetform.agents.host import volumes
from fleetform.agents.protocol.messages import MakeVolume
command = MakeVolume(1, "op-" + sys.argv[2], "v1", "data", sys.argv[1])
while sys.stdin.read(1) != "g":
    pass
volumes.make(command, "env")
"""


def names(path):
    return [one.name for one in Path(path).iterdir()]


def test_without_hard_links_one_mark_is_left_too(tmp_path, monkeypatch):
    """A shared file system may have none."""

    def link(*_):
        raise PermissionError

    monkeypatch.setattr(volumes.os, "link", link)
    path = str(tmp_path / "data")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", path), "env")
    volumes.make(MakeVolume(1, "op-2", "v1", "data", path), "env")
    assert names(path) == [volumes.MARK]


def test_a_volume_is_made_once(tmp_path):
    """A second time nothing is changed; another owner is refused and told whose it is."""
    path = str(tmp_path / "data")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", path), "env")
    volumes.make(MakeVolume(1, "op-2", "v1", "data", path), "env")
    assert json.loads((tmp_path / "data" / volumes.MARK).read_text())["operation_uid"] == "op-1"
    assert names(path) == [volumes.MARK]
    with pytest.raises(volumes.VolumeError, match="belongs to volume data of environment env"):
        volumes.make(MakeVolume(1, "op-3", "v1", "data", path), "other")


def test_agents_of_one_machine_make_a_volume_together(tmp_path):
    """However they meet, all of them succeed and one mark is left."""
    for number in range(3):
        path = str(tmp_path / f"data{number}")
        making = [
            subprocess.Popen([sys.executable, "-c", MAKING, path, str(one)], stdin=subprocess.PIPE)
            for one in range(4)
        ]
        for process in making:
            process.stdin.write(b"g")
            process.stdin.close()
        assert [process.wait(timeout=30) for process in making] == [0, 0, 0, 0]
        assert names(path) == [volumes.MARK]


def test_data_that_no_volume_knows_is_not_taken(tmp_path):
    """A new volume is one in an empty place; who means the data says so."""
    path = tmp_path / "data"
    path.mkdir()
    (path / "weights").write_text("w")
    with pytest.raises(volumes.VolumeError, match=r"import: \[volume/data\]"):
        volumes.make(MakeVolume(1, "op-1", "v1", "data", str(path), "new"), "env")
    assert names(path) == ["weights"]


def test_an_empty_directory_is_as_good_as_none(tmp_path):
    """A mount point is there before its volume, and so is what another agent has begun."""
    path = tmp_path / "data"
    path.mkdir()
    (path / f"{volumes.MARK}.77").write_text("")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", str(path), "new"), "env")
    assert volumes.MARK in names(path)


def test_what_is_found_is_taken_with_its_data(tmp_path):
    """The mark is put, and nothing else is touched."""
    path = tmp_path / "data"
    path.mkdir()
    (path / "weights").write_text("w")
    for _ in range(2):
        volumes.make(MakeVolume(1, "op-1", "v1", "data", str(path), "found"), "env")
    assert (path / "weights").read_text() == "w"
    assert json.loads((path / volumes.MARK).read_text())["volume_uid"] == "v1"


def test_a_forgotten_volume_is_taken_in_again(tmp_path):
    """The mark of an earlier volume of ours gives way; another environment's does not."""
    path = str(tmp_path / "data")
    volumes.make(MakeVolume(1, "op-1", "v1", "data", path), "env")
    volumes.make(MakeVolume(1, "op-2", "v2", "sets", path, "found"), "env")
    assert json.loads((tmp_path / "data" / volumes.MARK).read_text())["volume_uid"] == "v2"
    with pytest.raises(volumes.VolumeError, match="of environment"):
        volumes.make(MakeVolume(1, "op-3", "v3", "sets", path, "found"), "other")


def test_what_is_not_there_is_not_found(tmp_path):
    """Whoever imports means something that there is: nothing is made for them."""
    path = tmp_path / "data"
    with pytest.raises(volumes.VolumeError, match="nothing to import"):
        volumes.make(MakeVolume(1, "op-1", "v1", "data", str(path), "found"), "env")
    assert not path.exists()


@pytest.mark.parametrize("take", ["new", "found", "kept"])
def test_a_file_is_no_volume(tmp_path, take):
    """It is left as it is, and the advice is one that helps."""
    path = tmp_path / "data"
    path.write_text("no directory")
    with pytest.raises(volumes.VolumeError, match="declare the path of a directory"):
        volumes.make(MakeVolume(1, "op-1", "v1", "data", str(path), take), "env")
    assert path.read_text() == "no directory"


def test_a_volume_that_is_gone_is_not_made_again_as_if_it_were_kept(tmp_path):
    """Nor is an empty directory marked in its place; with its mark or its data it is taken."""
    path = tmp_path / "data"
    kept = MakeVolume(1, "op-1", "v1", "data", str(path), "kept")
    with pytest.raises(volumes.VolumeError, match="no longer exists, so the data of volume data"):
        volumes.make(kept, "env")
    assert not path.exists()
    path.mkdir()
    with pytest.raises(volumes.VolumeError, match="is empty and has no marker file"):
        volumes.make(kept, "env")
    assert names(path) == []
    (path / "weights").write_text("w")
    volumes.make(kept, "env")
    (path / "weights").unlink()
    volumes.make(kept, "env")
    assert names(path) == [volumes.MARK]
    with pytest.raises(volumes.VolumeError, match="belongs to volume data of environment env"):
        volumes.make(kept, "other")


def test_a_volume_is_not_made_in_the_directory_of_another(tmp_path):
    """It would go with that one's data, also where a link leads there."""
    outer = tmp_path / "outer"
    volumes.make(MakeVolume(1, "op-1", "v1", "data", str(outer)), "env")
    (outer / "there").mkdir()
    (tmp_path / "link").symlink_to(outer)
    for inner in (outer / "deep" / "er", tmp_path / "link" / "er", outer / "there"):
        for owner in ("env", "another"):
            with pytest.raises(volumes.VolumeError, match="outer, which is volume data"):
                volumes.make(MakeVolume(1, "op-2", "v2", "more", str(inner)), owner)
    with pytest.raises(volumes.VolumeError, match="outer, which is volume data"):
        volumes.make(MakeVolume(1, "op-3", "v2", "more", str(outer / "there"), "found"), "another")
    assert sorted(names(outer)) == [volumes.MARK, "there"]


def test_data_does_not_go_with_a_volume_that_lies_in_it(tmp_path):
    """Somebody may have moved another's volume in there: then nothing goes."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "deep" / "inner"
    volumes.make(MakeVolume(1, "op-2", "v2", "outer", str(outer)), "env")
    (outer / "first").write_text("data")
    volumes.make(MakeVolume(1, "op-1", "v1", "inner", str(tmp_path / "inner")), "another")
    inner.parent.mkdir()
    (tmp_path / "inner").rename(inner)
    removal = RemoveVolume(1, "op-3", "v2", str(outer), delete_data=True)
    with pytest.raises(volumes.VolumeError, match="inner is volume inner of environment another"):
        volumes.remove(removal, "env")
    assert (outer / "first").read_text() == "data"
    volumes.remove(RemoveVolume(1, "op-4", "v1", str(inner), delete_data=False), "another")
    volumes.remove(removal, "env")
    assert not outer.exists()


def test_a_directory_around_another_volume_is_not_taken_in(tmp_path):
    """By its own path or by a link to it; directories beside that one are nobody's."""
    outer, inner = tmp_path / "outer", tmp_path / "outer" / "deep" / "inner"
    volumes.make(MakeVolume(1, "op-1", "v1", "inner", str(inner)), "another", owner_name="lab")
    (tmp_path / "link").symlink_to(outer)
    for path in (outer, tmp_path / "link", outer / "deep"):
        with pytest.raises(volumes.VolumeError, match=r"inner is volume inner of environment lab"):
            volumes.make(MakeVolume(1, "op-2", "v2", "outer", str(path), "found"), "env")
        assert volumes.MARK not in names(path)
    (outer / "beside").mkdir()
    (outer / "beside" / "link").symlink_to(inner)
    volumes.make(MakeVolume(1, "op-3", "v2", "more", str(outer / "beside"), "found"), "env")
    assert volumes.MARK in names(outer / "beside")
