"""
A job's memory limited by looking: for hosts that delegate no control group.

Between two looks a job may exceed its limit, so this bounds a leak and not a burst.
"""

from __future__ import annotations

import os

from fleetform.agents.host import processes

_INTERVAL_MS = 100
"""A process fills about 1 GB in that time; more often, looking itself costs a share of a CPU."""


class Count:
    """Resident memory of all descendants of this process; fills `limits.Limit`."""

    def __init__(self, memory_bytes: int) -> None:
        self.interval_ms: int | None = _INTERVAL_MS
        self._memory_bytes = memory_bytes
        self._peak_bytes = 0
        self._killed = False

    def enter(self) -> None:
        """Nothing to enter: descent is what counts."""

    def leave(self) -> None:
        """Nothing to leave."""

    def exceeded(self) -> bool:
        pids = processes.descendants(os.getpid())
        used = processes.resident_bytes(pids)
        if used > self._memory_bytes:
            # Workers forked from one big parent share its pages: count those once before killing.
            used = processes.proportional_bytes(pids)
        self._peak_bytes = max(self._peak_bytes, used)
        self._killed = self._killed or used > self._memory_bytes
        return used > self._memory_bytes

    def killed(self) -> bool:
        return self._killed

    def peak_bytes(self) -> int | None:
        return self._peak_bytes or None

    def close(self) -> None:
        """Nothing was made."""
