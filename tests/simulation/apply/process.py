"""
One process: it may die at each point that it passes, and stand still at some.

Whatever a dead process still had under way is cut off; what it had sent may arrive all the same.
It dies inside of its own writes, whoever of the product's code makes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from fleetform.model.leadership import Holder
from fleetform.model.ports import Ledger
from fleetform.model.refusals import FenceLost
from simulation.apply.faults import Faults
from simulation.apply.judge import Judge
from simulation.apply.lock import TERM_SECONDS, Lock
from simulation.apply.machine import Machine
from simulation.apply.overrides import moment_ms
from simulation.apply.ports import Claimed, Disk, Look, OutgrownBy, Rebuild, TakenOver, Torn

__all__ = ["Crashed", "Process", "Room"]

T = TypeVar("T")

STATEMENTS_MAX = 12
"""
Statements after which a torn transaction ends: most of ours have ten to thirty. A shorter one
ends when it would be committed.
"""

PAUSE_SECONDS = 60.0
RENEW_SECONDS = 3.0
TERM_MS = int(TERM_SECONDS * 1000)


class Crashed(Exception):
    """The process was killed."""


@dataclass(slots=True)
class Room:
    """What all processes of a seed share."""

    judge: Judge
    disk: Disk
    machine: Machine
    lock: Lock
    faults: Faults
    outgrown_by: OutgrownBy
    rebuild: Rebuild
    look: Look
    claimed: Claimed
    taken_over: TakenOver
    alive: dict[str, Process]

    def kill_all(self) -> None:
        """The machine that everybody runs on loses its power, and agents start anew with it."""
        for process in list(self.alive.values()):
            process.die()
        self.machine.reset_sessions()


class Process:
    """
    Implements `model.ports.Gate` for whatever runs in it, and `ports.Writer` for its `ledger`.
    """

    def __init__(self, name: str, room: Room) -> None:
        self.name = name
        self.room = room
        self.ledger: Ledger = room.disk.open(self)
        self.dead = False
        self.fence = 0
        """Of the lease that it holds, or held; 0 for none."""
        self.has_lost = True
        self._renewed = room.judge.now
        self._stands_until = 0.0
        room.alive[name] = self

    async def __call__(self, call: Callable[[], T], /) -> T:
        """
        Carry out one transaction.

        At once, and in the order of the calls, as the writer's thread takes them; what takes time
        is the reply.
        """
        source = self.room.faults.source
        await self.stand_still()
        self.check_alive()
        try:
            result = call()
        except Torn as torn:
            raise Crashed from torn
        self.check_alive()
        # Alone on the machine, nobody would come between.
        if len(self.room.alive) > 1 or source.random() < 0.3:
            await asyncio.sleep(source.random() * 0.01)
            self.check_alive()
        return result

    # -- dying ------------------------------------------------------------------------------

    def begins(self, call: str) -> int:
        faults = self.room.faults
        if self.dead:
            raise Torn
        if faults.dies("before a transaction", call, self.name):
            self.die()
            raise Torn
        if faults.dies("in a transaction", call, self.name):
            # Dead to all others at once: nobody hears anything of this transaction.
            self.die()
            return faults.source.randint(1, STATEMENTS_MAX)
        return 0

    def has_committed(self, call: str) -> None:
        # Who watches the ledger is told of what was written before the process hears of its end.
        if self.room.faults.dies("after a commit", call, self.name):
            self.die()

    def pass_point(self, where: str, call: str) -> None:
        """
        Raises:
            Crashed: The process dies here, or is dead.
        """
        self.check_alive()
        if self.room.faults.dies(where, call, self.name):
            self.die()
            raise Crashed

    @property
    def holder(self) -> Holder:
        """Who it is as a manager; a part of `model.leadership.ManagerLease`, as `require` is."""
        return Holder(0, self.name, "apply", 0, "simulated", self.fence)

    # -- the lease ----------------------------------------------------------------------------

    def take_lease(self) -> bool:
        now_ms = moment_ms(self.room.judge.now)
        try:
            fence = self.room.disk.take_lease(self, self.name, term_ms=TERM_MS, now_ms=now_ms)
        except Torn as torn:
            raise Crashed from torn
        self.check_alive()
        if fence is None:
            return False
        if self.room.lock.holder is not None:
            self.room.judge.happened("lease that lapsed")
        self.fence, self.has_lost = fence, False
        self._renewed, self._stands_until = self.room.judge.now, 0.0
        return True

    def keep_lease(self) -> None:
        """A process that runs has renewed it; one that is dead or stands still did so before."""
        if not self.dead and not self.is_still and self.silent_seconds == 0.0:
            self._renew(self.room.judge.now)

    def give_lease_back(self) -> None:
        self.room.disk.release_lease(self.fence)
        self.fence, self.has_lost = 0, True

    def _renew(self, at: float) -> None:
        """Prolong it as at that moment, or find out that it is lost."""
        if self.has_lost:
            return
        kept = self.room.disk.renew_lease(self.fence, term_ms=TERM_MS, at_ms=moment_ms(at))
        self.has_lost = not kept
        self._renewed = at

    # -- standing still ---------------------------------------------------------------------

    async def stand_still(self) -> None:
        """Wait while the process is stopped as a whole, and perhaps stop it here."""
        faults = self.room.faults
        now = self.room.judge.now
        if faults.happens(faults.paused):
            self.room.judge.fault(now, "pause", self.name)
            # Renewed about each third of a term; nobody says when the last time was.
            self._renew(now - faults.source.random() * RENEW_SECONDS)
            self._stands_until = now + faults.source.random() * PAUSE_SECONDS
        if now < self._stands_until:
            await asyncio.sleep(self._stands_until - now)
            if faults.source.random() < 0.5 and not self.dead:
                # The thread that renews was the first to go on.
                self._renew(self.room.judge.now)

    @property
    def is_still(self) -> bool:
        return self.room.judge.now < self._stands_until

    @property
    def silent_seconds(self) -> float:
        """Since the lease was renewed; a process that runs does so."""
        if not self._stands_until:
            return 0.0
        now = self.room.judge.now
        if not self.is_still and self._renewed < self._stands_until < now - RENEW_SECONDS:
            # By now the thread has gone on as well.
            self._renew(now)
        return 0.0 if self._renewed >= self._stands_until else now - self._renewed

    def require(self) -> None:
        """
        Make sure that it may still cause effects.

        Raises:
            FenceLost: Somebody else may have taken the lock.
        """
        if not self.room.lock.is_sure(self):
            raise FenceLost(f"{self.name} may have been taken over")

    # -- the end ----------------------------------------------------------------------------

    def die(self) -> None:
        if self.dead:
            return
        self.room.lock.lose(self)
        self.dead = True
        self.room.alive.pop(self.name, None)

    def end(self) -> None:
        """Leave in peace, if it is alive."""
        if not self.dead:
            self.room.lock.release(self)
            self.die()

    def check_alive(self) -> None:
        """
        Raises:
            Crashed: It is dead.
        """
        if self.dead:
            raise Crashed
