"""
The log of a process that may run for weeks: each line with its time, and never more than two files.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable
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

    def __init__(
        self, path: Path, *, moment: Callable[[], str], bytes_max: int = BYTES_MAX
    ) -> None:
        self._path = path
        self._moment = moment
        self._bytes_max = bytes_max
        self._at_start = True
        self._open()

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            if self._at_start and os.fstat(1).st_size > self._bytes_max:
                self._path.replace(self._path.with_suffix(".log.1"))
                self._open()
            stamped = self._stamped(text)
            os.write(1, stamped.encode("utf-8", "backslashreplace"))
        return len(text)

    def _stamped(self, text: str) -> str:
        pieces = []
        for line in text.splitlines(keepends=True):
            pieces.append(f"{self._moment()} {line}" if self._at_start else line)
            self._at_start = line.endswith("\n")
        return "".join(pieces)

    def _open(self) -> None:
        descriptor = os.open(
            self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        for number in (1, 2):
            os.dup2(descriptor, number)
        os.close(descriptor)
