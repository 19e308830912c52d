"""What the newest plan on record blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetform.plan.serialize import recorded_holds

if TYPE_CHECKING:
    from fleetform.model.history import HistoryEntry
    from fleetform.model.plan import Held
    from fleetform.model.ports import Reader

_APPLIES_MAX = 20
"""Applies of a part of the configuration that are passed over to find one of the whole."""


class Blocked(NamedTuple):
    """The apply, and what its plan blocks."""

    apply: HistoryEntry
    held: tuple[Held, ...]


def read_blocked(reader: Reader) -> Blocked | None:
    """Read the newest apply of the whole configuration; None without such an apply."""
    for entry in reader.read_history(limit=_APPLIES_MAX, applies_only=True):
        body = reader.read_plan(entry.digest)
        found = None if body is None else recorded_holds(body)
        if found is not None:
            return Blocked(entry, found)
    return None
