"""Shared file systems on their host, with programs that stand in for the clients of NFS and Lustre."""

from __future__ import annotations

import os

import pytest

from fleetform.agents.host import disks, file_systems
from fleetform.agents.host.volumes import VolumeError
from fleetform.agents.protocol.messages import MountFileSystem

EFS = MountFileSystem(1, "efs", "fs-1.efs.us-east-1.amazonaws.com:/", "")


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """A folder with the only programs of the host; `mount` says what it is given, and fails."""
    if os.geteuid():
        pytest.skip("mounting needs root")
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setattr(disks, "FULL_PATH", f"{folder}:{disks.FULL_PATH}")
    monkeypatch.setattr(file_systems, "FULL_PATH", str(folder))
    write(folder / "mount", 'echo "$*" >&2; exit 32')
    return folder


def write(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def refusal(tmp_path, kind="efs"):
    order = MountFileSystem(1, kind, f"fs-1.{kind}:/", str(tmp_path / "data"))
    with pytest.raises(VolumeError) as refused:
        file_systems.mount(order)
    return str(refused.value)


@pytest.mark.parametrize(
    ("clients", "kind", "words"),
    [
        ((), "efs", "lacks an NFS client (mount.nfs4): install nfs-common"),
        (("nfs4",), "efs", "-t nfs4 -o nfsvers=4.1,"),
        (("nfs4", "efs"), "efs", "-t efs -o tls fs-1.efs:/"),
        ((), "lustre", "lacks a Lustre client (mount.lustre)"),
        (("lustre",), "lustre", "-t lustre -o relatime,flock fs-1.lustre:/"),
    ],
)
def test_how_it_is_mounted(programs, tmp_path, clients, kind, words):
    """By the client that the host has: EFS encrypted if its own helper is there."""
    for name in clients:
        write(programs / f"mount.{name}", "exit 0")
    assert words in refusal(tmp_path, kind)


def test_a_server_that_does_not_answer(programs, tmp_path, monkeypatch):
    """The mount ends in time, and the ports that must be open are named."""
    write(programs / "mount.nfs4", "exit 0")
    write(programs / "mount", "exec sleep 1000")
    monkeypatch.setattr(file_systems, "MOUNT_SECONDS", 0.1)
    assert "at port 2049" in refusal(tmp_path)


def test_a_mounted_one_is_not_mounted_again(programs, monkeypatch):
    """The table of the kernel is asked, and no server."""
    file_systems.mount(MountFileSystem(1, "efs", "fs-1.efs:/", "/proc"))
