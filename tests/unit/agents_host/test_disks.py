"""Disks of clouds on their host: real devices, real file systems."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

from fleetform.agents.host import disks
from fleetform.agents.host.volumes import VolumeError
from fleetform.agents.protocol.messages import MountDisk

_SYS_RESOURCE = 24  # linux/capability.h

ID = "vol-0f1e2d3c4b5a69788"


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    """An empty disk of 64 MB that is attached to this machine."""
    if os.geteuid() or not Path("/dev/loop-control").exists():
        pytest.skip("attaching a disk needs root and loop devices")
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    device = run("losetup", "--find", "--show", str(image))
    links = tmp_path / "by-id"
    links.mkdir()
    (links / f"nvme-Amazon_Elastic_Block_Store_{ID.replace('-', '')}").symlink_to(device)
    monkeypatch.setattr(disks, "BY_ID", str(links))
    yield device
    for path in (tmp_path / "data", tmp_path / "mnt"):
        if os.path.ismount(path):
            run("umount", str(path))
    run("losetup", "--detach", device)


def order(path):
    return MountDisk(1, "v1", "data", ID, str(path))


def test_an_empty_disk_is_formatted_once(disk, tmp_path):
    """What is written to it is there after it was unmounted and mounted again."""
    path = tmp_path / "data"
    disks.mount(order(path))
    assert not list(path.iterdir())
    assert path.stat().st_mode & 0o777 == 0o700
    (path / "file").write_text("kept")
    disks.mount(order(path))
    disks.unmount(str(path))
    assert not path.exists()
    disks.unmount(str(path))
    disks.mount(order(path))
    assert (path / "file").read_text() == "kept"


def test_a_file_system_is_kept(disk, tmp_path):
    """A disk that already has a file system is mounted as it is."""
    run("mkfs.ext4", "-q", disk)
    mount = tmp_path / "mnt"
    mount.mkdir()
    run("mount", disk, str(mount))
    (mount / "theirs").write_text("data")
    run("umount", str(mount))
    disks.mount(order(tmp_path / "data"))
    assert (tmp_path / "data" / "theirs").read_text() == "data"


def test_data_that_is_no_file_system_is_refused(disk, tmp_path):
    """Neither a table of partitions nor bytes without a name are overwritten."""
    with Path(disk).open("r+b") as device:
        device.write(b"ours")
    with pytest.raises(VolumeError, match="has data that is no file system"):
        disks.mount(order(tmp_path / "data"))
    with Path(disk).open("rb") as device:
        assert device.read(4) == b"ours"
    # One partition of Linux from sector 2048 on.
    entry = struct.pack("<B3xB3xII", 0, 0x83, 2048, 100_000)
    with Path(disk).open("r+b") as device:
        device.write(bytes(446) + entry + bytes(48) + b"\x55\xaa")
    with pytest.raises(VolumeError, match=r"has partitions \(dos\)"):
        disks.mount(order(tmp_path / "data"))


def test_a_disk_that_has_grown(disk, tmp_path):
    """The file system gets all of it."""
    (capabilities,) = re.findall(r"CapEff:\s*(\w+)", Path("/proc/self/status").read_text())
    if not int(capabilities, 16) >> _SYS_RESOURCE & 1:
        pytest.skip("growing a mounted file system needs the capability CAP_SYS_RESOURCE")
    path = tmp_path / "data"
    disks.mount(order(path))
    before = os.statvfs(path).f_blocks
    with (tmp_path / "image").open("r+b") as file:
        file.truncate(128 << 20)
    run("losetup", "--set-capacity", disk)
    disks.mount(order(path))
    assert os.statvfs(path).f_blocks > 1.8 * before


def test_a_disk_that_cannot_grow_is_mounted(disk, tmp_path, monkeypatch):
    """The data can be read at the old size, and a warning says so: some machines refuse to grow a file system."""
    path = tmp_path / "data"
    assert disks.mount(order(path)) == ""
    (path / "file").write_text("kept")

    def refused(*_argv):
        raise VolumeError("invalid", "`resize2fs` failed: Permission denied")

    monkeypatch.setattr(disks, "_grow", refused)
    warning = f"{ID} is mounted with the size that its file system had: `resize2fs` failed: Permission denied"
    assert disks.mount(order(path)) == warning
    assert (path / "file").read_text() == "kept"


def test_a_disk_of_a_snapshot_is_never_formatted(disk, tmp_path):
    """One that looks empty is refused; one with a file system is mounted as it is."""
    path = tmp_path / "data"
    from_snapshot = MountDisk(1, "v1", "data", ID, str(path), "snap-1")
    with pytest.raises(VolumeError, match="was made of snap-1 and has no file system"):
        disks.mount(from_snapshot)
    assert disks.file_system(disk) == ""
    assert not path.exists()
    run("mkfs.ext4", "-q", disk)
    disks.mount(from_snapshot)
    assert os.path.ismount(path)


def test_a_disk_that_is_not_attached(disk, tmp_path, monkeypatch):
    """It is waited for, and then named."""
    monkeypatch.setattr(disks, "DEVICE_SECONDS", 0.1)
    with pytest.raises(VolumeError, match="vol-1 is not attached to this host"):
        disks.mount(MountDisk(1, "v1", "data", "vol-1", str(tmp_path / "data")))
