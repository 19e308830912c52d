"""
An event loop whose clock moves only when nothing is ready.

It has no selector, no threads and no executor: what runs on it can wait for nothing but timers
and futures, so that a seed decides the whole order of events and an hour passes in
milliseconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Stuck(Exception):
    """Everything waits and no timer is set: nothing will ever happen again."""


class _NoSelector:
    """Stands where BaseEventLoop waits for I/O, and moves the clock instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise Stuck("everything waits and no timer is set")
        if timeout > 0:
            self._loop.advance(timeout)
        return []

    def close(self) -> None:
        """Nothing to close."""


class VirtualLoop(asyncio.BaseEventLoop):
    """Seconds since the simulation began are its time."""

    def __init__(self) -> None:
        super().__init__()
        self._virtual_now = 0.0
        self._selector = _NoSelector(self)
        # A timer that is due within this is run now: floats added up must not stall it.
        self._clock_resolution = 1e-9
        self.problems: list[str] = []
        self.on_advance: Callable[[float], object] = _ignore
        """Called with the new time whenever the clock has moved."""
        self.set_exception_handler(self._note_problem)

    def time(self) -> float:
        return self._virtual_now

    def advance(self, seconds: float) -> None:
        self._virtual_now += seconds
        self.on_advance(self._virtual_now)

    def _process_events(self, event_list: list[object]) -> None:
        """There is no I/O."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def _note_problem(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        problem = context.get("exception")
        self.problems.append(f"{context['message']}: {problem!r}")


def _ignore(now: float) -> None:
    """Nobody wants to know."""


def run(main: Coroutine[Any, Any, T], loop: VirtualLoop) -> T:
    """Run `main` to its end on a loop of its own, and close it."""
    try:
        return loop.run_until_complete(main)
    finally:
        loop.close()
