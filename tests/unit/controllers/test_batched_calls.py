"""Calls for many hosts at once: order, results, failures and the end of their tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest

from fleetform.controllers.batched_calls import BatchedCalls
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.ports import LedgerUnavailable

T = TypeVar("T")


class Gate:
    """Lets calls through when it is open."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()

    async def __call__(self, call: Callable[[], T]) -> T:
        await self.is_open.wait()
        return call()


def test_what_is_asked_for_meanwhile_goes_together() -> None:
    """The first is alone, all others are the next call, and each gets the result of its own."""

    async def story() -> None:
        gate, done = Gate(), []
        async with TaskGroup() as group:
            calls = BatchedCalls[str, str](
                "".join, gate=gate, task_group=group, name="calls", done=done.append
            )
            first = group.start(calls("a"), "a")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            others = [group.start(calls(item), item) for item in "bcd"]
            await asyncio.sleep(0)
            gate.is_open.set()
            assert await asyncio.gather(first, *others) == ["a", "bcd", "bcd", "bcd"]
            assert await calls("e") == "e"
        assert done == ["a", "bcd", "e"]

    asyncio.run(story())


def test_what_nobody_waits_for_any_more_is_not_carried_out() -> None:
    """It is dropped while it waits for its batch, alone or beside others; a batch that has begun is whole."""

    async def story() -> None:
        gate, done = Gate(), []
        async with TaskGroup() as group:
            calls = BatchedCalls[str, str](
                "".join, gate=gate, task_group=group, name="calls", done=done.append
            )
            first = group.start(calls("a"), "a")
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            others = [group.start(calls(item), item) for item in "bc"]
            await asyncio.sleep(0)
            first.cancel()
            others[0].cancel()
            gate.is_open.set()
            assert await others[1] == "c"
            alone = group.start(calls("d"), "d")
            await asyncio.sleep(0)
            alone.cancel()
            await asyncio.sleep(0)
            assert await calls("e") == "e"
        assert done == ["a", "c", "e"]

    asyncio.run(story())


def test_a_failure_is_that_of_its_batch_alone() -> None:
    """Who asked is told, and the next call is carried out."""

    def fail_on_a(items: Sequence[str]) -> int:
        if "a" in items:
            raise LedgerUnavailable("the disk is full")
        return len(items)

    async def story() -> None:
        gate = Gate()
        gate.is_open.set()
        async with TaskGroup() as group:
            calls = BatchedCalls[str, int](fail_on_a, gate=gate, task_group=group, name="calls")
            with pytest.raises(LedgerUnavailable, match="the disk is full"):
                await calls("a")
            assert await calls("b") == 1

    asyncio.run(story())


def test_nobody_waits_for_a_group_that_has_ended() -> None:
    """Those in the call that is under way are cancelled, and those who wait for the next one."""

    async def story() -> None:
        async with TaskGroup() as group:
            calls = BatchedCalls[str, str]("".join, gate=Gate(), task_group=group, name="calls")
            waiting = [asyncio.create_task(calls("a"))]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            waiting.append(asyncio.create_task(calls("b")))
            await asyncio.sleep(0)
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert [type(one) for one in found] == [asyncio.CancelledError] * 2

    asyncio.run(story())
