"""
Room that is kept for an emergency, beside the ledger and on its disk.

An override is a row, so on a full disk nobody could put one in force, and what fills the disk could
not be stopped. A file of no content keeps some room from everybody else. It is given up where an
emergency finds none, and a controller makes another once there is plenty. Which process has the
room then is decided by which writes first, so the jobs of this machine are paused before that
(`app.emergency`).
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["SIZE_BYTES", "give_up", "is_needed", "keep"]

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
    path = _beside(ledger)
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

    if not _beside(ledger).exists():
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
        _beside(ledger).unlink()


def _beside(ledger: Path) -> Path:
    return ledger.with_name("ledger.reserve")


def _make(path: Path) -> None:
    """Take the room; of half a reserve, which somebody was killed over, the rest."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.posix_fallocate(descriptor, 0, SIZE_BYTES)
    except OSError:
        path.unlink()
    finally:
        os.close(descriptor)
