"""How much room the file system has on which jobs get their directories."""

from __future__ import annotations

import os
from typing import NamedTuple


class Disk(NamedTuple):
    """In bytes; `free` is what an ordinary user may take."""

    total: int
    free: int


def measure(path: str) -> Disk:
    found = os.statvfs(path)
    return Disk(found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize)
