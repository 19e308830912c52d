"""Files that only this user may read, and that are complete whenever they have their name."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from fleetform.spec.private_folder import make_private_folder, sync_folder

__all__ = ["create_private", "replace_private"]


def replace_private(path: Path, content: bytes) -> None:
    """Give a file this content in one step; it is on the disk when this returns."""
    new = _written(path, content)
    try:
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
    sync_folder(path.parent)


def create_private(path: Path, content: bytes) -> None:
    """Create a file; one that another process has created meanwhile stays as it is."""
    new = _written(path, content)
    try:
        with contextlib.suppress(FileExistsError):
            os.link(new, path)
    finally:
        new.unlink()
    sync_folder(path.parent)


def _written(path: Path, content: bytes) -> Path:
    make_private_folder(path.parent)
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        new.unlink(missing_ok=True)
        raise
    return new
