"""
Folders that only this user may enter, whatever the umask, and names in them that survive a power cut.

`Path.mkdir(mode, parents=True)` gives its mode to the last folder alone: those above it get what the
umask leaves, which for some people is everything.
"""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["make_private_folder", "sync_folder"]


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are missing, with mode 0700; nothing if it is there."""
    try:
        path.mkdir(mode=0o700)
    except FileNotFoundError:
        make_private_folder(path.parent)
        # Another process may have been faster.
        path.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        if not path.is_dir():
            raise


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk: without this a power cut may undo a rename."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
