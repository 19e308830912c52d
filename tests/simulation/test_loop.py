from __future__ import annotations

import asyncio

import pytest

from simulation.loop import Stuck, VirtualLoop, run


def test_an_hour_takes_no_time() -> None:
    """Sleeping moves the virtual clock by exactly what was slept."""

    async def main() -> float:
        await asyncio.sleep(3600)
        return asyncio.get_running_loop().time()

    assert run(main(), VirtualLoop()) == pytest.approx(3600)


def test_timers_run_in_the_order_of_their_times() -> None:
    """Tasks that sleep end by time, and at the same time in the order they began."""
    order: list[str] = []

    async def sleep(name: str, seconds: float) -> None:
        await asyncio.sleep(seconds)
        order.append(name)

    async def main() -> None:
        await asyncio.gather(sleep("c", 3), sleep("a", 1), sleep("b", 1))

    run(main(), VirtualLoop())
    assert order == ["a", "b", "c"]


def test_a_deadlock_is_said_and_not_waited_for() -> None:
    """Where everything waits and no timer is set, the loop says so."""

    async def main() -> None:
        await asyncio.Event().wait()

    loop = VirtualLoop()
    task = main()
    with pytest.raises(Stuck):
        run(task, loop)


def test_a_time_limit_ends_a_wait() -> None:
    """`asyncio.wait_for` works as on a real loop."""

    async def main() -> None:
        async with asyncio.timeout(5):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run(main(), VirtualLoop())
