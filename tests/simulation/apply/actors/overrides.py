"""
Somebody who puts overrides above the tree, and lifts some: `fleetform emergency`.

What is put in force is written by the ledger's own call and kept by its own statements; whoever
places runs here asks nobody, so that only the ledger is in the way.
"""

from __future__ import annotations

import asyncio

from fleetform.model.override import OverrideKind
from fleetform.model.ports import Clock
from simulation.apply.actors.user import UserActor
from simulation.apply.process import Process, Room

__all__ = ["OverrideActor"]

_KINDS = (
    OverrideKind.STOP,
    OverrideKind.STOP,
    OverrideKind.DRAIN,
    OverrideKind.PAUSE,
    OverrideKind.FREEZE,
    OverrideKind.THAW,
)
_RUNS = ("run/train", "run/eval", "run/prep", "run/sweep", "run/*")
_FLEETS = ("fleet/pool", "fleet/spare")

LONGEST_SECONDS = 20.0
"""A paused process may sleep through a whole override, or wake up in the middle of it."""


class OverrideActor:
    """Acts through `person`, whose processes die as others do."""

    def __init__(self, person: UserActor, room: Room, clock: Clock) -> None:
        self._person = person
        self._room = room
        self._clock = clock

    async def watch(self) -> None:
        """Put and lift, a few times, as long as there are faults."""
        source = self._room.faults.source
        for _ in range(source.randint(1, 3)):
            await asyncio.sleep(source.random() * 5)
            if self._room.faults.over:
                return
            await self._put(source.choice(_KINDS))
            if source.random() < 0.5:
                await asyncio.sleep(source.random() * 5)
                await self.lift()

    async def _put(self, kind: OverrideKind) -> None:
        source = self._room.faults.source
        targets: tuple[str, ...] = ()
        if kind is OverrideKind.STOP:
            targets = (source.choice(_RUNS),)
        elif kind is OverrideKind.DRAIN:
            targets = (source.choice(_FLEETS),)
        seconds = None if source.random() < 0.4 else source.random() * LONGEST_SECONDS
        self._room.judge.happened(f"emergency {kind}")
        await self.put(kind, targets, seconds)
        if kind is OverrideKind.STOP and source.random() < 0.5:
            judge = self._room.judge
            if await self._person.attend() == "done":
                judge.above.check_ended(judge.executions.alive().values(), judge.now)

    async def put(
        self, kind: OverrideKind, targets: tuple[str, ...] = (), seconds: float | None = None
    ) -> str:
        """Put an override in force, for so many seconds or until it is lifted."""

        async def write(process: Process) -> str:
            now_ms = self._clock.now_ms()
            until_ms = None if seconds is None else now_ms + int(seconds * 1000)
            ledger = self._person.witnessed(process)
            await process(
                lambda: ledger.put_overrides(
                    kind,
                    targets,
                    reason="somebody says so",
                    who=self._person.name,
                    now_ms=now_ms,
                    until_ms=until_ms,
                )
            )
            return f"{kind} {' '.join(targets)}"

        return await self._person.live(write)

    async def lift(self) -> str:
        """Lift everything that is in force."""

        async def write(process: Process) -> str:
            ledger = self._person.witnessed(process)
            await process(
                lambda: ledger.lift_overrides(
                    None, who=self._person.name, now_ms=self._clock.now_ms()
                )
            )
            return "lifted"

        return await self._person.live(write)
