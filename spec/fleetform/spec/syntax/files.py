"""
A file's new content, at once: a reader sees the old text or the new one.

The other order of things (truncate, then write) leaves an empty document behind a full disk or
a killed process, and an empty document means that its resources are to be removed.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from fleetform.spec.private_folder import sync_folder

__all__ = ["FileChanged", "create_file", "remove_file", "replace_file"]


class FileChanged(Exception):
    """Another process wrote to the file since it was read; it was not changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.path = path


def replace_file(path: Path, before: bytes, after: bytes) -> None:
    """
    Replace what the file at `path` contains.

    A link stays one: the file that it leads to is replaced. Permissions stay as they are.

    Args:
        path: An existing plain file, or a link to one.
        before: What it is expected to contain: an editor may have saved it meanwhile.
        after: What it is to contain.

    Raises:
        FileChanged: It contains something else than `before`.
        OSError: The system refused; the file is as it was.
    """
    target = Path(os.path.realpath(path))
    mode = stat.S_IMODE(target.stat().st_mode)
    # In the same folder, because a rename is only atomic within one file system; hidden, because
    # a tree that is loaded at this moment must not find the document twice.
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        _check_unchanged(path, target, before)
        os.replace(name, target)  # noqa: PTH105 -- both are names of one folder; Path adds nothing
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)  # noqa: PTH108 -- see above
        raise
    sync_folder(target.parent)


def create_file(path: Path, content: bytes) -> None:
    """
    Make a file with this content, and the folders above it.

    Raises:
        FileExistsError: There is something of that name; it was left alone.
        OSError: The system refused.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            # What any editor would give it; a temporary file is its owner's alone.
            os.fchmod(file.fileno(), 0o666 & ~_umask())
            os.fsync(file.fileno())
        # A link fails where a rename would replace what somebody else has just made.
        os.link(name, path)
    finally:
        os.unlink(name)  # noqa: PTH108 -- a name, as above
    sync_folder(path.parent)


def remove_file(path: Path, before: bytes) -> None:
    """
    Remove a file that contains `before`.

    Raises:
        FileChanged: It contains something else.
        OSError: The system refused.
    """
    _check_unchanged(path, path, before)
    path.unlink()
    sync_folder(path.parent)


def _umask() -> int:
    # Only setting it tells it.
    now = os.umask(0o077)
    os.umask(now)
    return now


def _check_unchanged(path: Path, target: Path, before: bytes) -> None:
    if target.read_bytes() != before:
        raise FileChanged(path)
