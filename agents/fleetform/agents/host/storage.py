"""
The agent's memory on disk: a file of lines that is appended to, and rewritten when it is long.

Each line bears a checksum. A crash or a power cut can tear the last one; what follows the first
torn line was never relied upon, and is dropped.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable

_REWRITE_BYTES_MIN = 8 << 20
"""About 15 000 entries: read in a quarter of a second when the agent starts."""

_REWRITE_GROWTH = 4


class FileStore:
    """
    Fills `memory.Store`. One process at a time: the agent's lock sees to that.

    Attributes:
        torn: How many bytes at the end of the file could not be used when it was opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        self._lines, whole = _parse(_read_all(self._descriptor))
        self._size = os.fstat(self._descriptor).st_size
        self.torn = self._size - whole
        if self.torn:
            os.ftruncate(self._descriptor, whole)
            self._size = whole
        self._rewritten_size = self._size
        self._pending: list[bytes] = []
        self._must_sync = False

    def load(self) -> list[bytes]:
        return self._lines

    def append(self, entry: bytes, *, sync: bool) -> None:
        self._pending.append(_line(entry))
        self._must_sync = self._must_sync or sync

    def commit(self) -> None:
        """Write what was appended since; raises OSError, and keeps it for the next time."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        try:
            _write_all(self._descriptor, data)
        except OSError:
            # Half a line would hide all that follows it.
            os.ftruncate(self._descriptor, self._size)
            raise
        self._pending.clear()
        self._size += len(data)
        if self._must_sync:
            os.fdatasync(self._descriptor)
            self._must_sync = False

    @property
    def long(self) -> bool:
        """Tell whether rewriting is worth it."""
        return self._size > max(_REWRITE_BYTES_MIN, self._rewritten_size * _REWRITE_GROWTH)

    def rewrite(self, entries: Iterable[bytes]) -> None:
        """Replace the file by one with these entries, which say all that is known, at once."""
        temporary = f"{self._path}.new"
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, 0o600)
        try:
            _write_all(descriptor, b"".join(map(_line, entries)))
            os.fsync(descriptor)
            os.replace(temporary, self._path)
            # Or a power cut brings the old file back, without what will be synced into this one.
            _sync_directory(os.path.dirname(self._path) or ".")
        except OSError:
            os.close(descriptor)
            raise
        # What waited to be committed is among the entries.
        self._pending.clear()
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = self._rewritten_size = os.fstat(descriptor).st_size

    def close(self) -> None:
        os.close(self._descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _line(entry: bytes) -> bytes:
    return b"%08x %s\n" % (zlib.crc32(entry), entry)


def _parse(data: bytes) -> tuple[list[bytes], int]:
    """Return the whole lines and how many bytes they take."""
    lines: list[bytes] = []
    whole = 0
    for line in data.splitlines(keepends=True):
        checksum, _, entry = line[:-1].partition(b" ")
        if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(entry):
            break
        lines.append(entry)
        whole += len(line)
    return lines, whole


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        piece = os.read(descriptor, 1 << 20)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
