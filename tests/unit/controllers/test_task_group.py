from __future__ import annotations

import asyncio

import pytest

from fleetform.controllers.task_group import TaskGroup


def test_leaving_ends_every_task() -> None:
    """When the block is left, tasks that would wait for ever have ended."""
    ended = []

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(1)

    async def main() -> None:
        async with TaskGroup() as task_group:
            task_group.start(wait(), "a")
            task_group.start(wait(), "b")
            await task_group.run(asyncio.sleep(0))

    asyncio.run(main())
    assert ended == [1, 1]


def test_a_failing_task_ends_the_main_one() -> None:
    """What any task fails with is what `run` raises, although the main task would go on."""

    async def fail() -> None:
        raise LookupError("gone")

    async def main() -> None:
        async with TaskGroup() as task_group:
            task_group.start(fail(), "fails")
            await task_group.run(asyncio.sleep(3600))

    with pytest.raises(LookupError, match="gone"):
        asyncio.run(main())


def test_a_task_that_was_cancelled_is_no_failure() -> None:
    """A task that its owner cancels does not end the others."""

    async def main() -> str:
        async with TaskGroup() as task_group:
            task = task_group.start(asyncio.sleep(3600), "cancelled")
            task.cancel()
            await task_group.run(asyncio.sleep(0.01))
        return "done"

    assert asyncio.run(main()) == "done"
