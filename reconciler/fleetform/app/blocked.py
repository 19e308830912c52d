"""What the newest applies of the whole environment say: what is applied, and what is blocked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fleetform.plan.serialize import recorded_whole

if TYPE_CHECKING:
    from fleetform.model.history import HistoryEntry
    from fleetform.model.plan import Held
    from fleetform.model.ports import Reader

_APPLIES_MAX = 1000
"""Applies of a part, such as those of `submit`, that are passed over; their plans are read in 0.1 s."""


class Blocked(NamedTuple):
    """The apply, and what its plan blocks."""

    apply: HistoryEntry
    held: tuple[Held, ...]


class WholeApplies(NamedTuple):
    """
    The newest applies of the whole environment.

    Attributes:
        applied: The newest one of the configuration; None without one.
        destroyed: The `destroy` of everything since then; None without one.
        blocked: The newer one of both, with what its plan blocks.
    """

    applied: HistoryEntry | None = None
    destroyed: HistoryEntry | None = None
    blocked: Blocked | None = None


def read_whole_applies(reader: Reader) -> WholeApplies:
    """Read the newest ones; an apply of a part says nothing of the rest."""
    destroyed, blocked = None, None
    for entry in reader.read_history(limit=_APPLIES_MAX, applies_only=True):
        body = reader.read_plan(entry.digest)
        if body is None or (found := recorded_whole(body)) is None:
            continue
        blocked = blocked or Blocked(entry, found.held)
        if not found.destroys:
            return WholeApplies(entry, destroyed, blocked)
        destroyed = destroyed or entry
    return WholeApplies(None, destroyed, blocked)


def read_blocked(reader: Reader) -> Blocked | None:
    """Read what the newest apply of the whole environment blocks; None without such an apply."""
    return read_whole_applies(reader).blocked
