"""A program on a terminal of its own: what a person types, and what they see."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from integration.ledger.lab import PATIENCE_SECONDS


class Terminal:
    """
    Attributes:
        shown: All that the program has printed.
        process: The program; it leads a session that the terminal controls.
    """

    def __init__(
        self,
        command: Sequence[str],
        directory: Path,
        variables: Mapping[str, str],
        size: tuple[int, int] = (20, 70),
    ) -> None:
        self.master, slave = pty.openpty()
        self.resize(*size)
        self.modes = termios.tcgetattr(slave)
        self._slave = slave
        self.shown = b""
        # In the child, after its new session: `ssh` asks for the size of its controlling terminal.
        self.process = subprocess.Popen(
            ["setsid", "-c", "-w", *command], cwd=directory, env={**variables, "TERM": "vt220"},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=False,
        )  # fmt: skip

    def resize(self, rows: int, columns: int) -> None:
        """The kernel tells the foreground processes."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def until(self, pattern: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self.shown):
            assert time.monotonic() < deadline, self.shown
            self._read()

    def _read(self) -> None:
        if select.select([self.master], [], [], 0.2)[0]:
            with contextlib.suppress(OSError):
                self.shown += os.read(self.master, 65536)

    def end(self) -> int:
        """Wait for the exit code; the terminal must be as it was."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.shown
            self._read()
        self._read()
        assert termios.tcgetattr(self._slave) == self.modes
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)
