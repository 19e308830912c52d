"""
The template of a fleet's hosts, and what may be done to exchange those of another one.

`lifecycle.rollout` decides, the ledger writes it down, and who drives the runs lets hosts go.
"""

from __future__ import annotations

import enum

from fleetform.spec.dataclass import dataclass

__all__ = ["ENDED", "EXCHANGED", "RESTING", "SURGE", "Exchange", "Move", "Template"]

SURGE = 1_000_000
"""Added to a place's number for the host that comes before the old one goes."""


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


RESTING = "another host takes its place: what the fleet's hosts are made from has changed"
"""Why an outdated host gets nothing more; shown to all who wait for it."""

EXCHANGED = "it makes room for a host of the fleet's new template"
"""What is kept with a host that leaves for this: its place is to be taken again."""

ENDED = "it makes room for a host of the fleet's new template, and what runs there ends"
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
