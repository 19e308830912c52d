"""
Calls of the ledger for many hosts at once: one call carries out what several ask for.

What is asked for while a call is under way goes into the next one together. A thousand hosts that speak,
or fall silent, at once wait for a few transactions, and not for a thousand.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from fleetform.controllers.task_group import TaskGroup
from fleetform.model.ports import Gate

T = TypeVar("T")
R = TypeVar("R")


class BatchedCalls(Generic[T, R]):
    """
    Carries items out in the order in which they came.

    An item whose caller is cancelled before its batch begins is dropped: the mark of a silent host that has
    said hello meanwhile would be written after the hello, and stay.

    `call` gets those of one batch, on the thread of the ledger; `done` its result, on the loop, before
    their callers get it.
    """

    def __init__(
        self,
        call: Callable[[Sequence[T]], R],
        *,
        gate: Gate,
        task_group: TaskGroup,
        name: str,
        done: Callable[[R], None] | None = None,
    ) -> None:
        self._call = call
        self._gate = gate
        self._task_group = task_group
        self._name = name
        self._done = done
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._is_calling = False

    async def __call__(self, item: T) -> R:
        """
        Return the result of the batch with this item.

        Raises:
            LedgerUnavailable: Nothing of the batch is written.
        """
        result: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, result))
        if not self._is_calling:
            self._is_calling = True
            self._task_group.start(self._call_all(), name=self._name)
        return await result

    async def _call_all(self) -> None:
        try:
            while self._waiting:
                waiting, self._waiting = self._waiting, []
                if batch := [one for one in waiting if not one[1].cancelled()]:
                    await self._call_one(batch)
        finally:
            self._is_calling = False
            _end(self._waiting)

    async def _call_one(self, batch: Sequence[tuple[T, asyncio.Future[R]]]) -> None:
        try:
            found = await self._gate(partial(self._call, [item for item, _ in batch]))
            if self._done is not None:
                self._done(found)
            for _, result in batch:
                if not result.done():
                    result.set_result(found)
        except Exception as problem:  # noqa: BLE001 -- each caller that waits raises it itself
            for _, result in batch:
                if not result.done():
                    result.set_exception(problem)
        finally:
            _end(batch)


def _end(batch: Sequence[tuple[object, asyncio.Future[R]]]) -> None:
    """Cancel the futures without a result: the group of tasks ends, and no later call sets them."""
    for _, result in batch:
        result.cancel()
