"""
The template of a fleet's hosts, and what may be done to exchange those of another one.

`lifecycle.rollout` decides, the ledger writes it down, and who drives the runs lets hosts go.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.plan import FieldChange

__all__ = [
    "EARLY",
    "ENDED",
    "ENDED_TEXTS",
    "EXCHANGED",
    "EXCHANGED_TEXTS",
    "LEAVING",
    "MAX_UNAVAILABLE",
    "RESTING",
    "RESTING_TEXTS",
    "SURGE",
    "UNWANTED",
    "Exchange",
    "Move",
    "Template",
    "divides_otherwise",
]

SURGE = 1_000_000
"""Added to a place's number for the host that comes before the old one goes."""

EARLY = "-new"
"""At the end of that host's name; it is called as its place once that is free."""


MAX_UNAVAILABLE = 1
"""`update.max_unavailable` of a fleet that does not set it: the others keep their jobs meanwhile."""


@dataclass(frozen=True, slots=True)
class Template:
    """
    What the hosts of one fleet are to be made from, and how they are exchanged.

    `places` are the numbers that are wanted, in order; `at_once` how many are exchanged at a time.
    """

    digest: str
    strategy: str
    at_once: int
    places: tuple[int, ...]


UNWANTED = "unwanted"
"""In place of a host's template: another host was requested, whatever it is made from."""

RESTING = "a new host of its fleet replaces it"
"""Why no job starts on an outdated host; runs that wait for it show this reason."""

LEAVING = "its fleet is being removed or released"
"""Why no job starts on a host whose fleet is removed or released; shown like `RESTING`."""

EXCHANGED = "a new host of its fleet replaces it"
"""Stored with a host that leaves after its jobs: the rollout fills its place again."""

ENDED = "a new host of its fleet replaces it, and its jobs end"
"""Stored with a host that leaves without waiting for its jobs."""

# Ledgers of earlier releases contain these texts, and the texts decide what happens next.
_RESTING_BEFORE = "another host takes its place: its fleet wants one that is made anew"
_EXCHANGED_BEFORE = "it makes room for another host of its fleet"
_ENDED_BEFORE = "it makes room for another host of its fleet, and what runs there ends"

RESTING_TEXTS = (RESTING, _RESTING_BEFORE)
ENDED_TEXTS = (ENDED, _ENDED_BEFORE)
EXCHANGED_TEXTS = (EXCHANGED, _EXCHANGED_BEFORE, *ENDED_TEXTS)


_DIVIDING = {"sharing": "exact", "blocks": 1}
"""Fields of a fleet that make all of its hosts others, with what one has that does not say."""


def divides_otherwise(change: FieldChange) -> bool:
    """Tell whether a changed field makes other hosts; to write down what they are already does not."""
    if change.path not in _DIVIDING:
        return False
    before = change.before if change.before_set else _DIVIDING[change.path]
    after = change.after if change.after_set else _DIVIDING[change.path]
    return bool(before != after)


class Move(enum.Enum):
    """
    MAKE: a host at `number`. REST: it gets nothing more. LEAVE: it goes, with nothing on it.
    END: it goes at once, with what runs there. SETTLE: it takes `number`.
    """

    MAKE = "make"
    REST = "rest"
    LEAVE = "leave"
    END = "end"
    SETTLE = "settle"


@dataclass(frozen=True, slots=True)
class Exchange:
    """One move, of one host or of a place; the other is empty or 0."""

    move: Move
    uid: str = ""
    number: int = 0
