"""
The template of a fleet's hosts, and what may be done to exchange those of another one.

`lifecycle.rollout` decides, the ledger writes it down, and who drives the runs lets hosts go.
"""

from __future__ import annotations

import enum

from fleetform.spec.dataclass import dataclass

__all__ = [
    "EARLY",
    "ENDED",
    "EXCHANGED",
    "LEAVING",
    "RESTING",
    "SURGE",
    "UNWANTED",
    "Exchange",
    "Move",
    "Template",
]

SURGE = 1_000_000
"""Added to a place's number for the host that comes before the old one goes."""

EARLY = "-new"
"""At the end of that host's name; it is called as its place once that is free."""


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
"""In the place of a host's template: somebody has asked for another host, whatever it is made from."""

RESTING = "another host takes its place: its fleet wants one that is made anew"
"""Why an outdated host gets nothing more; shown to all who wait for it."""

LEAVING = "its fleet is about to go, as somebody has agreed"
"""Why a host gets nothing more whose fleet is removed or let go; shown as the one above."""

EXCHANGED = "it makes room for another host of its fleet"
"""What is kept with a host that leaves for this: its place is to be taken again."""

ENDED = "it makes room for another host of its fleet, and what runs there ends"
"""The same of one that waits for nothing."""


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
