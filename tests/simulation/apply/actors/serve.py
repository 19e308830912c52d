"""
Somebody who manages for long, as `serve` does, and rests while it is taken over.

Whether it is taken over is `app.serve`'s to say, of the ledger's rows; modelled are the
rounds in which it looks, and how whoever takes over waits until it has let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Permissions
from fleetform.model.ports import Clock
from fleetform.spec.desired import Desired
from simulation.apply.actors.overrides import OverrideActor
from simulation.apply.actors.user import UserActor
from simulation.apply.process import Process, Room

__all__ = ["ServeActor"]

LOOK_SECONDS = 0.5
LOOKS_MAX = 60
"""How often whoever takes over looks whether it has let go: half a minute."""


class ServeActor:
    """One `serve`, started anew when it has died, as long as there are faults."""

    def __init__(self, person: UserActor, room: Room, clock: Clock) -> None:
        self._person = person
        self._room = room
        self._clock = clock
        self._holding: Process | None = None

    async def serve(self) -> None:
        """Manage, rest, and begin again after a crash or a loss of the lease."""
        while not self._room.faults.over:
            await self._person.live(self._tenures)
            await asyncio.sleep(LOOK_SECONDS)

    async def take_over(
        self, warden: OverrideActor, person: UserActor, tree: Callable[[], Desired]
    ) -> None:
        """Have it rest, apply by hand, and give back, or let the time run out."""
        source = self._room.faults.source
        await asyncio.sleep(source.random() * 8)
        if self._room.faults.over:
            return
        judge = self._room.judge
        judge.happened("takeover")
        await warden.put(OverrideKind.TAKEOVER, (), source.random() * 20)
        for _ in range(LOOKS_MAX):
            if not self._holds():
                break
            await asyncio.sleep(LOOK_SECONDS)
        if self._holds() or not judge.above.in_force("takeover", judge.now):
            return
        await person.apply(tree(), Permissions())
        if source.random() < 0.5:
            await warden.lift()

    def _holds(self) -> bool:
        process = self._holding
        return process is not None and not process.dead and self._room.lock.holder is process

    async def _tenures(self, process: Process) -> str:
        while not self._room.faults.over:
            if await self._is_taken_over(process):
                await asyncio.sleep(LOOK_SECONDS)
                continue
            if not self._room.lock.take(process):
                await asyncio.sleep(LOOK_SECONDS)
                continue
            self._holding = process
            ending = await self._person.manage(process, self._wants_to_go_on)
            self._room.lock.release(process)
            if ending == "recovering":
                return ending
        return "done"

    async def _is_taken_over(self, process: Process) -> bool:
        overrides = await process(lambda: self._read(process))
        return self._room.taken_over(overrides, self._clock.now_ms()) is not None

    def _read(self, process: Process) -> tuple[Override, ...]:
        self._room.judge.above.looks[process.name] = self._room.judge.now
        return process.ledger.read_overrides()

    async def _wants_to_go_on(self, process: Process) -> bool:
        """Look about as often as `serve` does."""
        await asyncio.sleep(LOOK_SECONDS * (0.5 + self._room.faults.source.random()))
        if self._room.faults.over:
            return False
        return not await self._is_taken_over(process)
