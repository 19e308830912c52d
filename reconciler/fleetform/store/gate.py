"""
The gate to the ledger under asyncio: one writer's thread, calls in the order they were given.

Statements are synchronous; a commit waits for the disk. On a thread of their own the loop goes
on reading hosts meanwhile. One call is one transaction, and calls are not grouped into one commit:
the manager hands in batches, 110 calls for the whole life of a thousand runs, and a commit takes
0.2 ms. Grouping would save a tenth of that time, and have to undo calls that did not fail.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

__all__ = ["WriterGate"]

T = TypeVar("T")

_Call = tuple[Callable[[], Any], "asyncio.Future[Any]"]


class WriterGate:
    """
    Implements `model.ports.Gate`; belongs to the loop it is first used on.

    A call whose caller was cancelled is carried out all the same: it was given, and those after
    it were decided on the belief that it would be.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._work, name="ledger", daemon=True)

    async def __call__(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
            self._thread.start()
        assert self._loop is loop, "a gate serves one loop"
        future: asyncio.Future[T] = loop.create_future()
        self._calls.put((call, future))
        return await future

    def close(self) -> None:
        """Run the calls that were given, then end the thread. Call it after the last one."""
        if self._loop is not None:
            self._calls.put(None)
            self._thread.join()

    def _work(self) -> None:
        assert self._loop is not None
        while (item := self._calls.get()) is not None:
            call, future = item
            result, error = _carry_out(call)
            # A loop that is gone has nobody left who could be told.
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(_settle, future, result, error)


def _carry_out(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return call(), None
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it is the caller's
        return None, error


def _settle(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
