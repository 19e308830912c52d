"""
Folders that only this user may enter, whatever the umask.

`Path.mkdir(mode, parents=True)` gives its mode to the last folder alone: those above it get what the
umask leaves, which for some people is everything.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["make_private_folder"]


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
