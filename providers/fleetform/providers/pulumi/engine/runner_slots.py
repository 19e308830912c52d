"""
How many stacks are changed at a time: `pulumi.parallel`, and stacks that release go first.

A runner with its CLI and its plugin takes some 200 MB. A release that waits costs money, so a slow
create of scarce hosts must not delay it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

__all__ = ["PARALLEL", "RunnerSlots"]

PARALLEL = 4
"""The default of `pulumi.parallel`."""


class RunnerSlots:
    """
    Places for runners; used by the tasks of one event loop.

    Creates leave the last place to releases, unless it is the only one.
    """

    def __init__(self, parallel: int = PARALLEL) -> None:
        self._free = parallel
        self._kept = 1 if parallel > 1 else 0
        self._releases: deque[asyncio.Future[None]] = deque()
        self._creates: deque[asyncio.Future[None]] = deque()

    @contextlib.asynccontextmanager
    async def take(self, *, is_release: bool = False) -> AsyncIterator[None]:
        """Wait for a place, and have it until the end: releases first, then by the order of calls."""
        given: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._releases if is_release else self._creates).append(given)
        self._give()
        try:
            await given
            yield
        finally:
            # A task that was cancelled while it waited had no place, unless it got one just then.
            if given.done() and not given.cancelled():
                self._free += 1
            self._give()

    def _give(self) -> None:
        for waiting, kept in ((self._releases, 0), (self._creates, self._kept)):
            while waiting and self._free > kept:
                given = waiting.popleft()
                if not given.cancelled():
                    given.set_result(None)
                    self._free -= 1
