"""
Signals that end a command which carries out a plan: Ctrl-C, SIGTERM, and SIGHUP of a closed terminal.

The first ends it in good order, also where a shell has had SIGINT ignored for a background job. A
second Ctrl-C ends it at once. A closed terminal sends SIGHUP twice, by the kernel and by the shell,
so a repeated SIGTERM or SIGHUP means nothing more.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any, Self, TypeVar

from fleetform.cli.exit import Exit

T = TypeVar("T")

_SHOW_CURSOR = "\x1b[?25h"


class Interrupts:
    """Handles these signals for as long as it is entered; from the main thread only."""

    def __init__(self) -> None:
        self._is_asked = False
        self._cancel: Callable[[], object] | None = None
        self._is_shielded = False
        self._before: list[tuple[int, Any]] = []

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGHUP):
            # Ignored from the start: by `nohup`, or by a shell that runs it in the background.
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before.append((number, signal.signal(number, self._handle)))
        self._before.append((signal.SIGTERM, signal.signal(signal.SIGTERM, self._handle)))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """
        Run `work` in an event loop.

        Raises:
            KeyboardInterrupt: A signal came, and `work` was cancelled.
        """

        async def cancellable() -> T:
            loop, working = asyncio.get_running_loop(), asyncio.ensure_future(work)
            self._cancel = partial(loop.call_soon_threadsafe, working.cancel)
            if self._is_asked:
                working.cancel()
            try:
                return await working
            finally:
                self._cancel = None

        try:
            return asyncio.run(cancellable())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None

    def shield(self, call: Callable[[], T]) -> T:
        """Make a call that a first signal does not end: what it begins has to be finished."""
        self._is_shielded = True
        try:
            return call()
        finally:
            self._is_shielded = False

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        if self._is_asked:
            if number == signal.SIGINT:
                _end_at_once()
            return
        self._is_asked = True
        if self._cancel is not None:
            self._cancel()
        elif not self._is_shielded:
            raise KeyboardInterrupt


def _end_at_once() -> None:
    # Whatever hangs, hangs in a call of ours: nothing is waited for. A table that is redrawn hides
    # the cursor.
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR.encode())
    os._exit(Exit.INTERRUPTED)
