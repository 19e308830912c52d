"""How long anything hostile may take, counted so that a busy machine fails no test."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

import pytest


@contextlib.contextmanager
def processor_seconds(limit: float) -> Iterator[None]:
    """Fail what takes longer. Regular expressions look for signals too, so none can hide it."""

    def end(_number: int, _frame: FrameType | None) -> None:
        # Without a traceback: a signal may come where the interpreter has no line to tell.
        pytest.fail(f"it took more than {limit} s of the processor", pytrace=False)

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
