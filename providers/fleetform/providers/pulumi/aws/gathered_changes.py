"""Makes one change of a stack of calls for several of its hosts: each change takes a process of the engine and many seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import InstanceRequest, Report
from fleetform.providers.pulumi.aws.place import stack_of

__all__ = ["GatheredChanges"]

GATHER_SECONDS = 0.2
"""For how long a change of a stack waits for calls for other hosts of it: they are made side by side."""

T = TypeVar("T")


class GatheredChanges(Generic[T]):
    """
    Makes one change of a stack of the calls that come at the same time, and the next one of all that come during it.

    `change` returns the result of each request, by uid. A call for a host that is being changed waits for that change.
    """

    def __init__(
        self,
        change: Callable[
            [Sequence[InstanceRequest], Report], Awaitable[Mapping[str, T | ProviderError]]
        ],
    ) -> None:
        self._change = change
        self._waiting: dict[str, list[InstanceRequest]] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._results: dict[str, asyncio.Future[T]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}

    async def __call__(self, request: InstanceRequest, report: Report) -> T:
        if request.uid not in self._results:
            self._results[request.uid] = asyncio.get_running_loop().create_future()
            stack = stack_of(request)
            is_first = stack not in self._waiting
            self._waiting.setdefault(stack, []).append(request)
            if is_first:
                task = asyncio.create_task(self._run(stack, report))
                self._tasks[task] = None
                task.add_done_callback(lambda task: self._tasks.pop(task, None))
        # A caller may be cancelled; the change of the cloud goes on to its end.
        return await asyncio.shield(self._results[request.uid])

    async def _run(self, stack: str, report: Report) -> None:
        await asyncio.sleep(GATHER_SECONDS)
        async with self._locks.setdefault(stack, asyncio.Lock()):
            await self._change_waiting(stack, report)

    async def _change_waiting(self, stack: str, report: Report) -> None:
        requests = self._waiting.pop(stack)
        results = {one.uid: self._results[one.uid] for one in requests}
        found: Mapping[str, T | Exception]
        try:
            found = await self._change(requests, report)
        except asyncio.CancelledError:
            for future in results.values():
                future.cancel()
            raise
        except Exception as problem:  # noqa: BLE001 -- handed to each caller that waits for the change
            found = dict.fromkeys(results, problem)
        finally:
            for uid in results:
                del self._results[uid]
        for uid, future in results.items():
            _settle(future, found[uid])


def _settle(future: asyncio.Future[T], result: T | Exception) -> None:
    if isinstance(result, Exception):
        future.set_exception(result)
        # If all callers were cancelled, the loop would warn of an exception that no caller has read.
        future.exception()
    else:
        future.set_result(result)
