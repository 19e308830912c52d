"""
The disks of volumes behind a host of a lab: a sparse file with a loop device for each.

A host shares the devices of this machine, so it gets links by serial number of its own: `/dev/disk` of a
host is a file system of its own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab import Lab

_BY_ID = "/dev/disk/by-id"


class HostDisks:
    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._devices: dict[str, tuple[str, str]] = {}
        self.torn: list[str] = []
        """Volumes that were detached while they were mounted."""

    def attach(self, host: str, volume: str, size_gb: int) -> None:
        path = self._path(volume)
        path.parent.mkdir(exist_ok=True)
        with path.open("ab") as file:
            file.truncate(max(size_gb << 30, file.tell()))
        device = _run("losetup", "--find", "--show", str(path))
        link = f"{_BY_ID}/nvme-Amazon_Elastic_Block_Store_{volume.replace('-', '')}"
        self._devices[volume] = (host, device)
        self._lab.run(host, "sh", "-c", _LINK, "sh", device, link)

    def detach(self, volume: str) -> None:
        """Take a disk from its host; nothing where none has it."""
        if volume not in self._devices:
            return
        host, device = self._devices.pop(volume)
        mounted = self._lab.run(host, "cat", "/proc/1/mounts")
        if f"{device} " in mounted:
            self.torn.append(volume)
            self._lab.run(host, "umount", "--lazy", device)
        _run("losetup", "--detach", device)

    def end(self, host: str) -> None:
        """Detach the disks of a host that has ended."""
        for volume, (owner, device) in list(self._devices.items()):
            if owner == host:
                del self._devices[volume]
                _run("losetup", "--detach", device)

    def resize(self, volume: str, size_gb: int) -> None:
        path = self._path(volume)
        if path.exists():
            with path.open("r+b") as file:
                file.truncate(size_gb << 30)
        if volume in self._devices:
            _run("losetup", "--set-capacity", self._devices[volume][1])

    def close(self) -> None:
        for host in {host for host, _ in self._devices.values()}:
            self.end(host)

    def _path(self, volume: str) -> Path:
        return Path(self._lab.directory) / "disks" / volume


_LINK = f"""
set -e
mkdir -p /dev/disk
grep -q ' /dev/disk tmpfs ' /proc/self/mounts || mount -t tmpfs tmpfs /dev/disk
mkdir -p {_BY_ID}
ln -sfn "$1" "$2"
"""


def _run(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
