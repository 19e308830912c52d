from __future__ import annotations

import asyncio
import os
import signal

import pytest

from fleetform.app import driving


def test_a_signal_ends_what_does_not_end_by_itself() -> None:
    """A manager that waits for a full disk asks nobody whether it is done."""
    ended: list[str] = []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("stuck")

    async def story() -> None:
        stopped = asyncio.Event()
        asyncio.get_running_loop().call_later(0.05, stopped.set)
        async with asyncio.timeout(60):
            await driving.until_stopped(stuck(), stopped, seconds=0.05)

    asyncio.run(story())
    assert ended == ["stuck"]


def test_what_fails_is_heard_of() -> None:
    """Only a manager that was told to stop ends in silence."""

    async def broken() -> None:
        raise ValueError("broken")

    async def story() -> None:
        await driving.until_stopped(broken(), asyncio.Event(), seconds=5)

    with pytest.raises(ValueError, match="broken"):
        asyncio.run(story())


def test_a_closed_terminal_is_ignored_under_nohup() -> None:
    """Whoever started it so that it outlives the terminal gets that."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def story() -> bool:
        stopped = asyncio.Event()
        driving.stop_on_signals(stopped)
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0)
        return stopped.is_set()

    try:
        assert not asyncio.run(story())
    finally:
        signal.signal(signal.SIGHUP, before)
