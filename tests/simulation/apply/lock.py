"""
The environment's lock: the kernel's, freed when its holder dies, or a lease, which ends by itself.

A process that stands still keeps the kernel's lock and loses a lease; when it goes on it must find
that out before it has done anything. The lease is a row of the ledger, taken, prolonged and given
back by the statements that PostgreSQL is sent. Modelled are the thread that prolongs it, which is
caught up with when somebody looks, and the database's clock, which is the simulation's.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["TERM_SECONDS", "Lock", "Tenant"]

TERM_SECONDS = 10.0
"""How long a lease holds that is not renewed. Half of it after the last renewal, effects end."""


class Tenant(Protocol):
    """
    Somebody who may hold the lock; `silent_seconds` have passed since they last renewed it.

    `has_lost` once a renewal was refused.
    """

    @property
    def silent_seconds(self) -> float: ...
    @property
    def has_lost(self) -> bool: ...
    def take_lease(self) -> bool:
        """Ask the ledger for the lease."""

    def keep_lease(self) -> None:
        """Let the thread that renews it have done so in time, if it could."""

    def give_lease_back(self) -> None: ...


class Lock:
    """`holder` is who took it last; of a lease that may be somebody who has lost it since."""

    def __init__(self, *, lease: bool) -> None:
        self.lease = lease
        self.holder: Tenant | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, who: Tenant) -> bool:
        """Take it if nobody has it, or nobody any more."""
        if self.lease:
            if self.holder is who and not who.has_lost:
                return True
            if self.holder is not None:
                self.holder.keep_lease()
            if not who.take_lease():
                return False
            self.holder = who
        elif self.holder is None:
            self.holder = who
        return self.holder is who

    def is_sure(self, who: Tenant) -> bool:
        """Tell whether `who` may still cause effects, as far as they know themselves."""
        if not self.lease:
            return self.holder is who
        # First, for a renewal that is due by now may be refused.
        silent_seconds = who.silent_seconds
        return not who.has_lost and silent_seconds < TERM_SECONDS / 2

    def release(self, who: Tenant) -> None:
        """Give it up; nothing where somebody else has it."""
        if self.holder is not who:
            return
        if self.lease:
            who.give_lease_back()
        self.holder = None
        self.wake()

    def lose(self, who: Tenant) -> None:
        """Its process has died: the kernel frees its lock, and a lease goes on to its end."""
        if self.lease:
            who.keep_lease()
        elif self.holder is who:
            self.holder = None
        self.wake()

    def wake(self) -> None:
        """Let everybody look again who waits for its holder to have done something."""
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            _settle(future)

    async def wait(self) -> None:
        """Return when it is worth another look."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append(future)
        if self.lease:
            loop.call_later(TERM_SECONDS, _settle, future)
        await future


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
