"""Places for runners: how many, and who goes first."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from fleetform.providers.pulumi.engine.runner_slots import RunnerSlots


class Play:
    """Tasks that take places and keep them until they are ended; `running` lists who has one."""

    def __init__(self, parallel: int) -> None:
        self.slots = RunnerSlots(parallel)
        self.running: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.ends: dict[str, asyncio.Event] = {}

    async def begin(self, *names: str) -> None:
        for name in names:
            self.ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._run(name))
            await self.settle()

    async def end(self, name: str) -> None:
        self.ends[name].set()
        await self.settle()

    async def cancel(self, name: str) -> None:
        self.tasks[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _run(self, name: str) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            async with self.slots.take(is_release=name.startswith("release")):
                self.running.append(name)
                try:
                    await self.ends[name].wait()
                finally:
                    self.running.remove(name)


def played(play):
    """Run a coroutine, and end every task it left."""

    async def run(*arguments):
        made = Play(*arguments)
        await play(made)
        for task in made.tasks.values():
            task.cancel()
        await asyncio.gather(*made.tasks.values())

    return lambda *arguments: asyncio.run(run(*arguments))


def test_creates_leave_a_place_to_releases():
    """A release begins at once although more creates wait than there are places."""

    @played
    async def play(one):
        await one.begin("a", "b", "c")
        assert one.running == ["a", "b"]
        await one.begin("release")
        assert one.running == ["a", "b", "release"]
        await one.end("a")
        assert one.running == ["b", "release"], "the place is kept for another release"
        await one.end("release")
        assert one.running == ["b", "c"]

    play(3)


def test_releases_go_first():
    """Those that came later overtake creates, and begin in their own order."""

    @played
    async def play(one):
        await one.begin("release-1", "release-2", "a", "release-3", "release-4")
        assert one.running == ["release-1", "release-2"]
        await one.end("release-1")
        await one.end("release-2")
        assert one.running == ["release-3", "release-4"]
        await one.end("release-3")
        await one.end("release-4")
        assert one.running == ["a"]

    play(2)


def test_one_place_is_for_all():
    """There is none to keep."""

    @played
    async def play(one):
        await one.begin("a", "b")
        assert one.running == ["a"]
        await one.end("a")
        assert one.running == ["b"]

    play(1)


@pytest.mark.parametrize("cancelled", ["a", "b", "c"])
def test_a_cancelled_task_leaves_its_place(cancelled):
    """Whether it had one or waited."""

    @played
    async def play(one):
        await one.begin("a", "b", "c")
        await one.cancel(cancelled)
        rest = [name for name in ("a", "b", "c") if name != cancelled]
        assert one.running == rest
        for name in rest:
            await one.end(name)
        await one.begin("d", "e")
        assert one.running == ["d", "e"]

    play(3)
