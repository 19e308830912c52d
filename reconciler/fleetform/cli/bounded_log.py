"""
The log of a process that may run for weeks: never more than two files.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

__all__ = ["BYTES_MAX", "BoundedLog"]

BYTES_MAX = 1 << 20
"""Of each of the two files: some ten thousand lines."""


class BoundedLog(io.TextIOBase):
    """
    Writes to standard output and error, which it leads into the file.

    So what Python itself prints, such as a traceback, is there too. A full disk ends nothing: what
    cannot be written is left out.
    """

    def __init__(self, path: Path, *, bytes_max: int = BYTES_MAX) -> None:
        self._path = path
        self._bytes_max = bytes_max
        self._at_start = True
        self._open()

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            if self._at_start and os.fstat(1).st_size > self._bytes_max:
                self._path.replace(self._path.with_suffix(".log.1"))
                self._open()
            os.write(1, text.encode("utf-8", "backslashreplace"))
            self._at_start = text.endswith("\n")
        return len(text)

    def _open(self) -> None:
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        for number in (1, 2):
            os.dup2(descriptor, number)
        os.close(descriptor)
