"""
Frames that wait to leave, the most urgent first.

All that is said in one turn of the event loop leaves in one write: a thousand small requests would
otherwise be a thousand system calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

_PRIORITIES = 4
"""`link.CONTROL` to `link.BLOBS`."""


class Outgoing:
    """The frames of one connection; `write` must not raise."""

    def __init__(self, loop: asyncio.AbstractEventLoop, write: Callable[[bytes], None]) -> None:
        self._loop = loop
        self._write = write
        self._frames: tuple[list[bytes], ...] = tuple([] for _ in range(_PRIORITIES))
        self._is_due = False

    def add(self, frame: bytes, priority: int) -> None:
        """Send a frame at the end of this turn of the loop."""
        self._frames[priority].append(frame)
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send now what waits."""
        self._is_due = False
        frames = b"".join(frame for waiting in self._frames for frame in waiting)
        for waiting in self._frames:
            waiting.clear()
        if frames:
            self._write(frames)
