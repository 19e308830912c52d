"""
A shared file system for hosts of a lab, whose kernel may have neither NFS nor Lustre.

`mount` of a host is the real one, and so are its options and its source. Its helpers `mount.nfs4` and
`mount.lustre` are programs of the tests: they record their arguments and mount one device, which this kernel
shows alike to all hosts that mount it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from lab import Lab

RECORD = "/run/mounted"
"""In each host: the arguments of each call of a helper, a line each."""


class FileServer:
    def __init__(self, folder: Path) -> None:
        """Create an empty file system in a folder, whose root belongs to root."""
        image = folder / "shared-file-system"
        with image.open("wb") as file:
            file.truncate(64 << 20)
        _run("mkfs.ext4", "-q", str(image))
        self._device = _run("losetup", "--find", "--show", str(image))

    def install(self, lab: Lab, host: str) -> None:
        """Give a host the clients of the file system."""
        helper = _HELPER.replace("DEVICE", self._device)
        lab.run(host, "sh", "-c", _INSTALL, "sh", helper)

    def close(self) -> None:
        _run("losetup", "--detach", self._device)


_HELPER = f"""#!/bin/sh
echo "$*" >>{RECORD}
exec mount -t ext4 DEVICE "$2"
"""

_INSTALL = f"""
set -e
touch {RECORD}
mkdir /run/clients
mount -t tmpfs tmpfs /run/clients
for name in nfs4 lustre; do
    printf %s "$1" >/run/clients/mount.$name
    chmod +x /run/clients/mount.$name
done
mount -t overlay -o lowerdir=/run/clients:/usr/sbin overlay /usr/sbin
"""


def _run(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()
