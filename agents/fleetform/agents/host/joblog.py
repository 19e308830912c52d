"""
The output of one job on disk: a beginning and an end within budgets, by logical offset.

The file is sparse: a byte lies at the offset that counts all the job ever wrote. Once head and
tail are full, space between them is given back to the file system as a hole, so a reader needs
no index: what is a hole was dropped. A write that fails, as on a full disk, leaves a hole too.
Nothing here ever makes the job wait or fail.

Where a file system cannot punch holes, what comes after head and tail is dropped instead.
"""

from __future__ import annotations

import errno
import os
from typing import NamedTuple

from fleetform.agents.host import kernel

_BLOCK_BYTES = 4096
"""Holes are whole blocks; larger blocks (64 KiB on some POWER hosts) only make gaps smaller."""

_COPY_BYTES = 1 << 20


class Writer:
    """
    The supervisor's end.

    Attributes:
        total_bytes: What the job wrote so far, kept or not.
    """

    def __init__(self, path: str, *, head_bytes: int, tail_bytes: int) -> None:
        self.total_bytes = 0
        self._path = path
        self._descriptor = -1
        # A hole begins at a block, or its first bytes would read as zeros rather than as gone.
        self._head_bytes = _round_up(head_bytes)
        self._tail_bytes = tail_bytes
        self._punched_to = self._head_bytes
        # Punched in steps: a system call a block would cost more than the writing.
        self._step_bytes = max(_BLOCK_BYTES, _round_up(tail_bytes // 16))
        self._can_punch = True
        self._resume_at = 0

    def write(self, data: bytes) -> None:
        """Keep what can be kept."""
        begin = self.total_bytes
        self.total_bytes += len(data)
        # After a failure go on at a whole block: what is missing is then a hole, not zeros.
        skipped = min(max(self._resume_at - begin, 0), len(data))
        if skipped < len(data) and self._has_room(begin):
            self._put(memoryview(data)[skipped:], begin + skipped)
        self._trim()

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_removed(self) -> bool:
        """Tell whether there was a file, and its name is gone."""
        return self._descriptor >= 0 and not os.path.exists(self._path)

    def restore(self) -> bool:
        """
        Go on in a file of the same name, with all that was kept, where the old one was removed.

        Returns whether it was.
        """
        if not self.is_removed():
            return False
        old = Reader(f"/proc/self/fd/{self._descriptor}")
        new = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        offset = 0
        while piece := old.read(offset, _COPY_BYTES):
            os.pwrite(new, piece.data, piece.offset)
            offset = piece.offset + len(piece.data)
        old.close()
        os.dup2(new, self._descriptor, inheritable=False)
        os.close(new)
        return True

    def _has_room(self, offset: int) -> bool:
        return self._can_punch or offset < self._head_bytes + self._tail_bytes

    def _put(self, data: memoryview, offset: int) -> None:
        try:
            if self._descriptor < 0:
                # Not before there is output: many a short job writes none.
                flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o600)
            while data:
                written = os.pwrite(self._descriptor, data, offset)
                data, offset = data[written:], offset + written
        except OSError:
            # No space, quota, a file too large, a broken disk: the job is worth more than its log.
            self._resume_at = _round_up(self.total_bytes)

    def _trim(self) -> None:
        frontier = (self.total_bytes - self._tail_bytes) // _BLOCK_BYTES * _BLOCK_BYTES
        length = frontier - self._punched_to
        if length < self._step_bytes or not self._can_punch or self._descriptor < 0:
            return
        try:
            kernel.punch_hole(self._descriptor, self._punched_to, length)
            self._punched_to = frontier
        except OSError:
            self._can_punch = False


class Piece(NamedTuple):
    """Output from `offset` on; a larger offset than asked for says that some was dropped."""

    offset: int
    data: bytes


class Reader:
    """
    The agent's end. Reads while the supervisor writes.

    Raises:
        FileNotFoundError: The job has written nothing yet.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self._descriptor)

    def is_of(self, path: str) -> bool:
        """Tell whether the file has this name, which its writer may have given to another one."""
        try:
            return os.path.samestat(os.stat(path), os.fstat(self._descriptor))
        except OSError:
            return True  # There is no other one.

    def read(self, offset: int, bytes_max: int) -> Piece | None:
        """Return the next piece at or after `offset`; None when there is no more for now."""
        while True:
            begin = self._seek(offset, os.SEEK_DATA)
            if begin is None:
                return None
            data = os.pread(self._descriptor, bytes_max, begin)
            # Looked for after reading: a hole punched meanwhile has been read as zeros.
            hole = self._seek(begin, os.SEEK_HOLE)
            if hole is not None and hole > begin:
                return Piece(begin, data[: hole - begin]) if data else None
            offset = begin + 1

    def _seek(self, offset: int, whence: int) -> int | None:
        try:
            return os.lseek(self._descriptor, offset, whence)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            return None  # At or beyond the end of the file.


def _round_up(count: int) -> int:
    return -(-count // _BLOCK_BYTES) * _BLOCK_BYTES
