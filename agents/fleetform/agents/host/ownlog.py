"""
The agent's own log: bounded, for all of its processes together.

The daemon, its spawner and the supervisors share one open file. Renaming it would leave the
others writing to a file that nobody finds and nobody bounds, so that when it is full its
content is copied to one backup and the file is cut to nothing: who appends goes on at its start.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os

BYTES_MAX = 8 << 20
"""Of the log, and of its one backup: weeks of an agent's life, or a minute of one in a loop."""

_COPY_BYTES = 1 << 20


class OwnLog(io.TextIOBase):
    """
    Stands for `sys.stdout` and `sys.stderr`, so that tracebacks are bounded like messages.

    Nothing is kept in memory: a line that was written is there when the process is killed.
    """

    def __init__(self, path: str, bytes_max: int = BYTES_MAX) -> None:
        self._backup = os.path.abspath(path) + ".1"
        self._bytes_max = bytes_max
        # Close-on-exec: no program of a job has it.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def fileno(self) -> int:
        return self._file

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        # One write may be larger than all: the end of a traceback is what says the error.
        data = text.encode("utf-8", "backslashreplace")[-self._bytes_max :]
        try:
            if self._has_room(len(data)) or self._turn_over(len(data)):
                os.write(self._file, data)
        except OSError:
            pass  # A full disk: an agent goes on without its log.
        return len(text)

    def _has_room(self, coming: int) -> bool:
        return os.fstat(self._file).st_size + coming <= self._bytes_max

    def _turn_over(self, coming: int) -> bool:
        """Make room; says whether there is some."""
        try:
            # Between processes, unlike flock on a file that was opened before the fork.
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            # Another one does it now. Waiting for it could be long, if it was stopped, and going
            # on would have no bound: this line is lost, as in a flood any may be.
            return False
        try:
            if not self._has_room(coming):
                self._empty()
            return True
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)

    def _empty(self) -> None:
        # The bound is worth more than the backup.
        with contextlib.suppress(OSError):
            self._copy(os.fstat(self._file).st_size)
        os.ftruncate(self._file, 0)

    def _copy(self, size: int) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        backup = os.open(self._backup, flags, 0o600)
        try:
            # A log from before there was a bound: its end.
            offset = max(0, size - self._bytes_max)
            while data := os.pread(self._file, min(_COPY_BYTES, size - offset), offset):
                os.write(backup, data)
                offset += len(data)
        finally:
            os.close(backup)
