"""A volume's directory is put aside once, whole, and never taken from anybody else."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from fleetform.agents.host import snapshots, volumes
from fleetform.agents.host.snapshots import put_aside
from fleetform.agents.host.volumes import VolumeError
from fleetform.agents.protocol.messages import MakeVolume, SnapshotVolume


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A volume `data` of environment `env` with something in it."""
    path = tmp_path / "data"
    make(path)
    (path / "model").write_text("weights")
    (path / "logs").mkdir()
    (path / "link").symlink_to("model")
    return path


def make(path: Path, uid: str = "vol-1", owner: str = "env") -> None:
    volumes.make(MakeVolume(1, "op", uid, "data", str(path)), owner, owner_name="lab", now_ms=5)


def order(path: Path, uid: str = "vol-1", into: str = "data.snapshot-vol-1") -> SnapshotVolume:
    return SnapshotVolume(2, "op-2", uid, "data", str(path), str(path.with_name(into)))


def test_the_directory_goes_on_under_another_name(data: Path) -> None:
    """Its contents are there, it is marked with what it was, and it is no volume any more."""
    put_aside(order(data), "env", 77)
    into = data.with_name("data.snapshot-vol-1")
    assert not data.exists()
    assert (into / "model").read_text() == "weights"
    assert (into / "link").readlink() == Path("model")
    assert volumes.read_mark(str(into / volumes.MARK)) == {}
    assert volumes.read_mark(str(into / snapshots.MARK)) == {
        "environment_uid": "env",
        "volume_uid": "vol-1",
        "name": "data",
        "operation_uid": "op-2",
        "path": str(data),
        "taken_at_ms": 77,
    }


def test_asking_twice_is_the_same_as_once(data: Path) -> None:
    """Also where a new volume has come to lie at the old path meanwhile."""
    put_aside(order(data), "env", 77)
    put_aside(order(data), "env", 78)
    make(data, uid="vol-2")
    (data / "new").write_text("work")
    put_aside(order(data), "env", 79)
    assert (data / "new").read_text() == "work"
    assert (data.with_name("data.snapshot-vol-1") / "model").exists()


def test_what_is_not_there_needs_no_snapshot(tmp_path: Path) -> None:
    """Somebody removed the directory by hand: there is nothing to keep."""
    assert put_aside(order(tmp_path / "data"), "env", 77) == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("uid", "owner"), [("vol-2", "env"), ("vol-1", "other")])
def test_another_owner_is_refused(data: Path, uid: str, owner: str) -> None:
    """Neither another volume nor another environment moves it, and the owner is named."""
    with pytest.raises(VolumeError, match="belongs to volume data") as refusal:
        put_aside(order(data, uid), owner, 77)
    assert refusal.value.code == "conflict"
    assert (data / "model").exists()


def test_a_taken_name_is_refused(data: Path) -> None:
    """What lies under the new name already is not written over."""
    data.with_name("data.snapshot-vol-1").mkdir()
    with pytest.raises(VolumeError, match="exists already"):
        put_aside(order(data), "env", 77)
    assert (data / "model").exists()


def test_a_snapshot_lies_beside_its_volume(data: Path) -> None:
    """Anywhere else could be another file system, or another person's."""
    elsewhere = SnapshotVolume(2, "op", "vol-1", "data", str(data), str(data.parent / "a" / "b"))
    for command in (elsewhere, order(data, into="data")):
        with pytest.raises(VolumeError, match="is not in the folder of"):
            put_aside(command, "env", 77)
    assert (data / "model").exists()


def test_an_unmarked_directory_is_left_alone(tmp_path: Path) -> None:
    """What bears no mark of ours is nobody's volume."""
    (tmp_path / "data").mkdir()
    with pytest.raises(VolumeError, match="no mark"):
        put_aside(order(tmp_path / "data"), "env", 77)


@pytest.fixture
def across(monkeypatch: pytest.MonkeyPatch, data: Path) -> list[str]:
    """Renaming the volume itself fails as it does for a mount point; returns what was renamed."""
    rename = os.rename
    renamed: list[str] = []

    def refuse(source: str, target: str) -> None:
        if source == str(data):
            raise OSError(errno.EBUSY, "Device or resource busy")
        renamed.append(target)
        rename(source, target)

    monkeypatch.setattr(os, "rename", refuse)
    return renamed


def test_a_mount_point_is_copied_and_emptied(data: Path, across: list[str]) -> None:
    """The copy gets its name when it is whole; what it was a copy of is emptied."""
    put_aside(order(data), "env", 77)
    into = data.with_name("data.snapshot-vol-1")
    assert across == [str(into)]
    assert (into / "model").read_text() == "weights"
    assert not data.exists()


@pytest.mark.parametrize("crash", ["while copying", "before it is emptied"])
def test_a_copy_that_was_cut_off_is_gone_on_with(
    data: Path, across: list[str], crash: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, and nothing is there twice, wherever the power went."""
    into = data.with_name("data.snapshot-vol-1")
    with monkeypatch.context() as patch:
        if crash == "while copying":
            partial = data.with_name(f"{into.name}.partial")
            partial.mkdir()
            (partial / "half").write_text("mod")
        else:
            patch.setattr(volumes, "empty", _power_cut)
            with pytest.raises(KeyboardInterrupt):
                put_aside(order(data), "env", 77)
            assert (data / "model").exists()
    put_aside(order(data), "env", 78)
    assert sorted(one.name for one in into.iterdir()) == [
        snapshots.MARK,
        "link",
        "logs",
        "model",
    ]
    assert not data.exists()
    assert {one.name for one in data.parent.iterdir()} == {into.name}


def _power_cut(_path: str) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_mount", [False, True])
def test_no_other_volume_goes_along(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_mount: bool
) -> None:
    """One that was moved in there stays at its path, and so does all of this one."""
    make(tmp_path / "inner", uid="vol-9", owner="another")
    inner = data / "logs" / "inner"
    (tmp_path / "inner").rename(inner)
    if is_mount:

        def rename(*_: object) -> None:
            raise OSError(errno.EBUSY, "it is a mount point")

        monkeypatch.setattr(snapshots.os, "rename", rename)
    with pytest.raises(VolumeError, match="inner is volume data of environment lab") as caught:
        put_aside(order(data), "env", 77)
    assert "cannot be kept as a snapshot: remove that volume first" in str(caught.value)
    assert sorted(one.name for one in data.iterdir()) == [volumes.MARK, "link", "logs", "model"]
    assert (inner / volumes.MARK).exists()


def test_a_copied_directory_is_not_emptied_around_another_volume(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy of a mount point takes its time, and somebody may come in meanwhile."""
    copytree = snapshots.shutil.copytree

    def copy(source: str, target: str, *how: object, **more: object) -> None:
        copytree(source, target, *how, **more)
        # It calls itself by its name for each folder within.
        if source == str(data):
            make(tmp_path / "inner", uid="vol-9", owner="another")
            rename(tmp_path / "inner", data / "inner")

    rename = os.rename

    def busy(source: str | Path, target: str | Path) -> None:
        if source == str(data):
            raise OSError(errno.EBUSY, "it is a mount point")
        rename(source, target)

    monkeypatch.setattr(snapshots.shutil, "copytree", copy)
    monkeypatch.setattr(snapshots.os, "rename", busy)
    with pytest.raises(VolumeError, match="inner is volume data of environment lab"):
        put_aside(order(data), "env", 77)
    assert (data / "model").read_text() == "weights"
    assert (data / "inner" / volumes.MARK).exists()


def test_what_was_made_anew_goes_beside_what_was_put_aside(data: Path) -> None:
    """A volume came back under its uid after its snapshot: what it holds by now is kept as well."""
    first = order(data)
    into = data.with_name("data.snapshot-vol-1")
    assert put_aside(first, "env", 1) == (str(into),)
    make(data)
    (data / "newer").write_text("work")
    beside = into.with_name(f"{into.name}-{first.operation_uid[:12]}")
    assert put_aside(first, "env", 2) == (str(into), str(beside)), "it answers with both"
    assert not data.exists()
    assert (into / "model").exists()
    assert (beside / "newer").read_text() == "work"
    assert put_aside(first, "env", 3) == (str(into), str(beside))
    assert (beside / "newer").exists()
