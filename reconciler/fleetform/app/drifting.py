"""
How `serve` watches for drift: a look at the world now and then, told once, and corrected.

A look costs a connection a host, so it is rarer than a plan. What it finds goes into the plan
that follows it; in between the ledger alone is compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.observing import log_drift, look
from fleetform.model.drift import Drift, expected_and_seen
from fleetform.model.history import LogLevel

if TYPE_CHECKING:
    from fleetform.model.live import Live
    from fleetform.model.ports import Gate, Ledger, Progress
    from fleetform.providers.contract.hosts import HostProvider

__all__ = ["DRIFT_MS", "DriftWatch"]

DRIFT_MS = 300_000
"""Five minutes: what matters to runs is seen by their sessions at once, and this is for the rest."""


class DriftWatch:
    """
    Looks at the world when it is due, and remembers what it has told.

    `every_ms` is the least time between two looks. The first is due after one such time: whoever
    has just begun to manage greets every host anyway.
    """

    def __init__(
        self,
        ledger: Ledger,
        gate: Gate,
        hosts: HostProvider,
        progress: Progress,
        every_ms: int,
    ) -> None:
        self.every_ms = every_ms
        self._ledger = ledger
        self._gate = gate
        self.hosts = hosts
        self._progress = progress
        self._told: dict[tuple[str, str], Drift] = {}
        self._next_ms = SystemClock().boot_ms() + every_ms

    async def live(self) -> Live:
        """
        Read the ledger, with what the world has become where a look is due.

        Raises:
            LedgerUnavailable: What was seen cannot be written down.
        """
        if SystemClock().boot_ms() < self._next_ms:
            return await self._gate(self._ledger.read_live)
        found = await look(self._ledger, self.hosts, self._gate)
        # Counted from its end: many slow hosts must not make one look follow the other.
        self._next_ms = SystemClock().boot_ms() + self.every_ms
        await self._tell(found.live.drift)
        return found.live

    async def _tell(self, drifts: tuple[Drift, ...]) -> None:
        now = {(str(one.resource), one.path): one for one in drifts}
        new = [
            one
            for place, one in now.items()
            if place not in self._told or self._told[place].seen != one.seen
        ]
        over = [one for place, one in self._told.items() if place not in now]
        at_ms = SystemClock().now_ms()
        if new:
            await self._gate(lambda: log_drift(self._ledger, "drift.found", new, at_ms))
        if over:
            await self._gate(lambda: log_drift(self._ledger, "drift.corrected", over, at_ms))
        self._told = now
        for one in new:
            self._progress.notice(
                f"drift: {one.resource} {expected_and_seen(one.path, one.expected, one.seen)}",
                event="drift.found",
                level=LogLevel.WARNING,
                details={"resource": str(one.resource), "path": one.path},
            )
        for one in over:
            self._progress.notice(
                f"drift: {one.resource} {one.path} no longer differs",
                event="drift.over",
                details={"resource": str(one.resource), "path": one.path},
            )
