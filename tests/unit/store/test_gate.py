"""The gate: calls in order, on one thread, each answered with its own result or error."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fleetform.store.gate import WriterGate


@pytest.fixture
def gate() -> WriterGate:
    return WriterGate()


def test_calls_keep_their_order(gate: WriterGate) -> None:
    """Calls of many tasks are carried out in the order they were given, off the loop's thread."""
    carried_out: list[int] = []
    threads: set[str] = set()

    def call(number: int) -> int:
        carried_out.append(number)
        threads.add(threading.current_thread().name)
        return number * 2

    async def give() -> list[int]:
        return await asyncio.gather(*(gate(lambda n=n: call(n)) for n in range(200)))

    assert asyncio.run(give()) == [number * 2 for number in range(200)]
    assert carried_out == list(range(200))
    assert threads == {"ledger"}
    gate.close()


def test_error_is_its_callers(gate: WriterGate) -> None:
    """A call that fails raises where it was awaited, and the next is carried out."""

    def fail() -> None:
        raise ValueError("no")

    async def give() -> int:
        with pytest.raises(ValueError, match="no"):
            await gate(fail)
        return await gate(lambda: 1)

    assert asyncio.run(give()) == 1
    gate.close()


def test_cancelled_call_is_carried_out(gate: WriterGate) -> None:
    """What was given is carried out although nobody waits for it any more."""
    begin, carried_out = threading.Event(), []

    async def give() -> None:
        first = asyncio.ensure_future(gate(lambda: begin.wait(60)))
        second = asyncio.ensure_future(gate(lambda: carried_out.append("second")))
        await asyncio.sleep(0)
        second.cancel()
        begin.set()
        await first
        await gate(lambda: None)

    asyncio.run(give())
    assert carried_out == ["second"]
    gate.close()


def test_close_carries_out_what_was_given(gate: WriterGate) -> None:
    """A gate that closes ends its thread, and one that was never used has none."""
    WriterGate().close()
    asyncio.run(_give(gate))
    gate.close()
    assert not gate._thread.is_alive()


async def _give(gate: WriterGate) -> None:
    await gate(lambda: None)
