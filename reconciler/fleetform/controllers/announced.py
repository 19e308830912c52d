"""
Reports to watchers which overrides came into force, and which are over.

An override runs out without a row being written, so what is said follows from the time and from
what was said before, and not from an event.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.override import Override, holding
from fleetform.model.ports import Progress
from fleetform.views.overrides import in_force

__all__ = ["Announced"]


class Announced:
    """The overrides that were announced."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._announced: dict[int, Override] = {}

    def tell(self, overrides: Iterable[Override], *, now_ms: int) -> None:
        """Say what is new and what is over; nothing where all has been said."""
        if not overrides and not self._announced:
            return
        here = {one.number: one for one in holding(overrides, now_ms)}
        for number, one in here.items():
            if number not in self._announced:
                self._progress.notice(in_force(one), event="override.in-force")
        for number, one in self._announced.items():
            if number not in here:
                self._progress.notice(f"ended: {one.title}", event="override.over")
        self._announced = here
