"""
Whether a folder lies on a file system whose locks and shared memory a ledger can trust.

WAL needs memory shared between its readers and writers, and SQLite's locks need a kernel that
keeps them (sqlite.org/wal.html, sqlite.org/lockingv3.html): over a network neither is sure, and
a ledger that two machines believe to be theirs starts jobs twice. Asked of the kernel's table of
mounts and not of `statfs`, which gives every FUSE file system the same number.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fleetform.store.errors import NetworkFileSystemError

__all__ = ["ALLOW_VARIABLE", "file_system_of", "require_local"]

ALLOW_VARIABLE = "FLEETFORM_ALLOW_NETWORK_STATE"
"""Set to 1, it says that only one machine ever mounts this folder and its locks work."""

_NETWORK = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.gcsfuse", "fuse.glusterfs",
        "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4",
        "orangefs", "smb3", "smbfs", "wekafs",
    }
)  # fmt: skip

_MOUNTS = Path("/proc/self/mountinfo")


def require_local(folder: Path) -> None:
    """
    Refuse a folder on a network file system; it need not exist yet.

    Where the table of mounts cannot be read (another kernel, a sandbox), nothing is refused.
    """
    if os.environ.get(ALLOW_VARIABLE) == "1":
        return
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    kind = file_system_of(folder.resolve(), mounts)
    if kind in _NETWORK:
        raise NetworkFileSystemError(
            f"{folder} is on a network file system ({kind}), where a ledger's locks are not safe",
            advice="set FLEETFORM_STATE_HOME to a folder on a local disk, or, if only this machine"
            f" ever mounts it, {ALLOW_VARIABLE}=1",
        )


def file_system_of(path: Path, mounts: str) -> str:
    """
    Return the type of the file system that holds a path.

    Args:
        path: Absolute, links resolved.
        mounts: Text of `/proc/self/mountinfo`, see proc(5): the mount point is field 5, the
            type comes after a lone hyphen. Of several mounts on one point the last one shows.
    """
    found, depth = "", -1
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        if not separator:
            continue
        point = Path(_unescape(before.split(" ")[4]))
        if len(point.parts) >= depth and path.is_relative_to(point):
            found, depth = after.split(" ", 1)[0], len(point.parts)
    return found


def _unescape(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
