"""
How the two ends of a connection know that it lives: values in, values out.

A half-open connection looks like a quiet one. Each end therefore says something every 15 s, and
gives the connection up when it has heard nothing for two whole intervals. Intervals are counted
rather than timed: a process that could not run for a minute has missed one interval, and reads
what arrived meanwhile before the next one ends. Standard library only, Python 3.9.
"""

from __future__ import annotations

HEARTBEAT_SECONDS = 15.0
"""A connection that carries nothing is given up after 30 to 45 s."""

_SILENT_INTERVALS_MAX = 2


class Pulse:
    """Counts the intervals in which nothing was heard."""

    def __init__(self) -> None:
        self._heard = True
        self._silent = 0

    def hear(self) -> None:
        """Note that bytes have arrived, whatever they mean."""
        self._heard = True

    def is_dead(self) -> bool:
        """End an interval, and tell whether the other end has been silent for too long."""
        self._silent = 0 if self._heard else self._silent + 1
        self._heard = False
        return self._silent >= _SILENT_INTERVALS_MAX
