"""
The environment's lock: the kernel's, freed when its holder dies, or a lease, which ends by itself.

A process that stands still keeps the kernel's lock and loses a lease; when it goes on it must find
that out before it has done anything.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

__all__ = ["TERM_SECONDS", "Lock", "Tenant"]

TERM_SECONDS = 10.0
"""How long a lease holds that is not renewed. Half of it after the last renewal, effects end."""


class Tenant(Protocol):
    """Somebody who may hold the lock; `silent_seconds` have passed since they last renewed it."""

    @property
    def silent_seconds(self) -> float: ...


class Lock:
    def __init__(self, *, lease: bool) -> None:
        self.lease = lease
        self.holder: Tenant | None = None
        self._waiting: list[asyncio.Future[None]] = []

    def take(self, who: Tenant) -> bool:
        """Take it if nobody has it, or nobody any more."""
        lapsed = self.holder is not None and self.holder.silent_seconds >= TERM_SECONDS
        if self.holder is None or (self.lease and lapsed):
            self.holder = who
        return self.holder is who

    def is_sure(self, who: Tenant) -> bool:
        """Tell whether `who` may still cause effects."""
        if not self.lease:
            return self.holder is who
        return self.holder is who and who.silent_seconds < TERM_SECONDS / 2

    def release(self, who: Tenant) -> None:
        """Give it up; nothing where somebody else has it."""
        if self.holder is who:
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
