"""
What goes wrong in one seed, and where.

Every write of the ledger and every call to a host is a point at which whoever makes it may die.
Half of the seeds die at one of them, the n-th that anybody passes; the other half at any with some
probability. Both come from the seed, as do the moods of the network. A seed can be told to die at
one more, so that a test may go through all of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["KINDS", "POINTS", "Faults", "Point", "draw_faults"]

POINTS = (
    "before a transaction",
    "in a transaction",
    "after a commit",
    "before a call",
    "after a call",
)
"""Where a process may die; the judge counts them by these names."""

Point = tuple[str, str]
"""One of `POINTS`, and the write or the call that it belongs to."""

KINDS = (
    *(f"crash {where}" for where in POINTS),
    "request lost",
    "reply lost",
    "request late",
    "doubled",
    "refused",
    "pause",
    "power cut",
    "full disk",
    "restore",
    "host gone",
    "directory gone",
    "mark gone",
)
"""Everything that goes wrong, as the judge counts it."""

_NTH_MAX = 100
"""Points that an ordinary seed passes while there are faults: 30 to 140."""


@dataclass(slots=True)
class Faults:
    """
    Shares of all calls, from 0 to 1. `over` ends them for good.

    Attributes:
        nth: The point at which a process dies, counted over the whole seed; 0 for none.
        also: Another one.
        lost_requests: The call does nothing, and nobody hears of it.
        lost_replies: It does what it is asked, and the caller hears of a failure.
        late: It is believed lost, and done a while later, also when its caller is dead by then.
        doubled: The network delivers it twice, and it is answered twice.
        paused: A process stands still for up to a minute at a point.
        points: Those that were passed, in their order; `died_at` are some of them.
    """

    source: random.Random
    tell: Callable[[str, str], None]
    crash: float = 0.0
    nth: int = 0
    also: int = 0
    lost_requests: float = 0.0
    lost_replies: float = 0.0
    late: float = 0.0
    doubled: float = 0.0
    refused: float = 0.0
    paused: float = 0.0
    over: bool = False
    points: list[Point] = field(default_factory=list, init=False)
    died_at: list[Point] = field(default_factory=list, init=False)

    def dies(self, where: str, what: str, who: str) -> bool:
        """Tell whether `who` dies here, at the write or call `what`; counts the point."""
        if self.over:
            return False
        self.points.append((where, what))
        passed = len(self.points)
        if passed not in {self.nth, self.also} and not (
            self.crash and self.source.random() < self.crash
        ):
            return False
        self.died_at.append((where, what))
        self.tell(f"crash {where}", f"{who} at {what}")
        return True

    def happens(self, share: float) -> bool:
        return not self.over and share > 0 and self.source.random() < share


def draw_faults(source: random.Random, tell: Callable[[str, str], None]) -> Faults:
    """Draw the moods of one seed; one in ten has none at all."""
    faults = Faults(source, tell)
    kind = source.random()
    if kind < 0.1:
        return faults
    if kind < 0.55:
        faults.nth = source.randint(1, _NTH_MAX)
    else:
        faults.crash = source.choice([0.02, 0.05, 0.12])
    faults.lost_requests = source.choice([0, 0, 0.05, 0.2])
    faults.lost_replies = source.choice([0, 0, 0.05, 0.2])
    faults.late = source.choice([0, 0, 0.05, 0.1])
    faults.doubled = source.choice([0, 0.1, 0.3])
    faults.refused = source.choice([0, 0, 0, 0.05])
    faults.paused = source.choice([0, 0, 0.01, 0.03])
    return faults
