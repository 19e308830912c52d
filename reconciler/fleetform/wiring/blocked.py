"""Reads what the newest plan on record of the whole configuration blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetform.plan.recorded import recorded_holds

if TYPE_CHECKING:
    from fleetform.model.history import HistoryEntry
    from fleetform.model.plan import Held
    from fleetform.model.ports import Reader

__all__ = ["Blocked", "read_blocked"]

_PLANS_MAX = 20
"""Plans of a part of the configuration that are passed over to find one of the whole."""


class Blocked(NamedTuple):
    """The plan, and what it blocks."""

    plan: HistoryEntry
    held: tuple[Held, ...]


def read_blocked(reader: Reader) -> Blocked | None:
    """Read the newest plan of the whole configuration; None without such a plan."""
    for entry in reader.read_history(limit=_PLANS_MAX):
        body = reader.read_plan(entry.digest)
        found = None if body is None else recorded_holds(body)
        if found is not None:
            return Blocked(entry, found)
    return None
