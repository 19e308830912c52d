"""
Has fleets grow and shrink as the scheduler decides: the ledger gets rows, and the sessions of hosts do the rest.

A new row is created by the session of its host, and one that leaves is released by `fleets.Departures`: each by a task of
its own, so that a create that takes long delays no release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.lifecycle.idle_hosts import judge_idle

if TYPE_CHECKING:
    from fleetform.controllers.hosts import HostSessions
    from fleetform.controllers.mirror import Mirror
    from fleetform.model.decision import Decisions
    from fleetform.model.ports import Clock, Gate, Ledger


class FleetScaling:
    """Writes down what the rounds of one controller decide on the number of hosts."""

    def __init__(
        self, *, hosts: HostSessions, ledger: Ledger, gate: Gate, clock: Clock, fence: int
    ) -> None:
        self._hosts = hosts
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._fence = fence
        self.is_growing = False
        """The last round has asked for hosts, whose rows are not read yet."""

    async def carry_out(self, decisions: Decisions, mirror: Mirror) -> int | None:
        """Write what has changed; return when the next idle host leaves, Unix milliseconds, or None."""
        self.is_growing = bool(decisions.scale)
        if not mirror.scaling:
            return None
        now_ms = self._clock.now_ms()
        idle = judge_idle(decisions.spare, mirror.instances, mirror.scaling, now_ms=now_ms)
        if decisions.scale or idle.is_news:
            await self._gate(
                lambda: self._ledger.commit_scaling(
                    decisions.scale, idle, fence=self._fence, now_ms=now_ms
                )
            )
            self._hosts.changed.update(dict.fromkeys((*idle.began, *idle.ended)))
            if decisions.scale or idle.leaving:
                self._hosts.rows_changed = True
            self._hosts.wake()
        return idle.next_at_ms
