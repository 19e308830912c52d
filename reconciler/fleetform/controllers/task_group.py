"""
Tasks that live and end together, in a fixed order.

`asyncio.TaskGroup` cancels in the order of addresses, which no seed can replay; this keeps a
list. The first task that fails ends all others, and its exception is what the caller sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self


class TaskGroup:
    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[Any]] = []
        self._failed: asyncio.Future[None] | None = None

    async def __aenter__(self) -> Self:
        self._failed = asyncio.get_running_loop().create_future()
        return self

    def start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        """Run `work` until it ends or the group closes."""
        task = asyncio.create_task(work, name=name)
        self._tasks.append(task)
        task.add_done_callback(self._note)
        return task

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` to its end; raise what any other task of the group fails with meanwhile."""
        assert self._failed is not None
        main = self.start(work, "main")
        done = asyncio.get_running_loop().create_future()

        def wake(_: asyncio.Future[Any]) -> None:
            if not done.done():
                done.set_result(None)

        main.add_done_callback(wake)
        self._failed.add_done_callback(wake)
        await done
        if self._failed.done():
            self._failed.result()
        main.result()

    def _note(self, task: asyncio.Task[Any]) -> None:
        if task in self._tasks:
            self._tasks.remove(task)
        if task.cancelled() or (problem := task.exception()) is None:
            return
        if self._failed is not None and not self._failed.done():
            self._failed.set_exception(problem)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        # What they end with is reported through `run`; here all of them must have ended.
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._failed is not None and self._failed.done():
            self._failed.exception()  # Retrieved, or the loop would complain about it at exit.
