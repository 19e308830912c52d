"""
Whether a folder lies on a file system whose locks and shared memory a ledger can trust.

WAL needs memory shared between its readers and writers, and SQLite's locks need a kernel that
keeps them (sqlite.org/wal.html, sqlite.org/lockingv3.html): over a network neither is sure, and
a ledger that two machines believe to be theirs starts jobs twice. Asked of the kernel's table of
mounts and not of `statfs`, which gives every FUSE file system the same number.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from fleetform.store.errors import NetworkFileSystemError

__all__ = [
    "ALLOW_VARIABLE",
    "NEEDED_BYTES",
    "PLENTY_BYTES",
    "SIZE_BYTES",
    "file_system_of",
    "give_up",
    "is_needed",
    "keep",
    "require_local",
]


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


# Room that is kept for an emergency, beside the ledger and on its disk.
# An override is a row, so on a full disk nobody could put one in force, and what fills the disk could
# not be stopped. A file of no content keeps some room from everybody else. It is given up where an
# emergency finds none, and a controller makes another once there is plenty. Which process has the
# room then is decided by which writes first, so the jobs of this machine are paused before that
# (`app.emergency`).

SIZE_BYTES = 2 << 20
"""
To ask for the end of a thousand runs takes 0.6 MB of the ledger's log; the rest is for what hosts
answer.
"""

NEEDED_BYTES = SIZE_BYTES // 2
"""Where so much can be had, an emergency needs no reserve."""

PLENTY_BYTES = 2 * SIZE_BYTES
"""Where less is free, a reserve would be what fills the disk."""


def keep(ledger: Path) -> None:
    """
    Make the reserve of this ledger where there is none; nothing where there is no room for one.

    Never fails: without a reserve everything works, as long as there is room.
    """
    path = _reserve_of(ledger)
    with contextlib.suppress(OSError):
        if path.exists() and path.stat().st_size == SIZE_BYTES:
            return
        disk = os.statvfs(ledger.parent)
        if disk.f_bavail * disk.f_frsize >= PLENTY_BYTES:
            _make(path)


def is_needed(ledger: Path) -> bool:
    """
    Tell whether there is a reserve, and nothing else is free.

    Whether something is free is tried and not read: there may be a quota.
    """
    # Here and not above: it is slow to import, and whoever manages needs the rest of this module.
    from tempfile import TemporaryFile

    if not _reserve_of(ledger).exists():
        return False
    try:
        with TemporaryFile(dir=ledger.parent) as probe:
            os.posix_fallocate(probe.fileno(), 0, NEEDED_BYTES)
    except OSError:
        return True
    return False


def give_up(ledger: Path) -> None:
    """Give the reserve up: the ledger has its room, if no other process takes it first."""
    with contextlib.suppress(OSError):
        _reserve_of(ledger).unlink()


def _reserve_of(ledger: Path) -> Path:
    return ledger.with_name("ledger.reserve")


def _make(path: Path) -> None:
    """Take the room; of half a reserve, where a process was killed over it, the rest."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, SIZE_BYTES)
    except OSError:
        path.unlink()
    finally:
        os.close(descriptor)
