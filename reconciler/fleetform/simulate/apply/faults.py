"""
What goes wrong in one seed, and where.

Half of the seeds die at one chosen point, the n-th that anybody passes, so that before long each
point of an apply has been died at; the other half at any point with some probability. Both come
from the seed, as do the moods of the network.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

__all__ = ["POINTS", "Faults", "draw_faults"]

POINTS = (
    "before a transaction",
    "in a transaction",
    "after a commit",
    "before a call",
    "after a call",
)
"""Where a process may die; the judge counts them by these names."""

_NTH_MAX = 120
"""Points that an ordinary seed passes while there are faults: 60 to 200."""


@dataclass(slots=True)
class Faults:
    """
    Shares of all calls, from 0 to 1. `over` ends them for good.

    Attributes:
        nth: The point at which a process dies, counted over the whole seed; 0 for none.
        lost_requests: The call does nothing, and nobody hears of it.
        lost_replies: It does what it is asked, and the caller hears of a failure.
        late: It is believed lost, and done a while later, also when its caller is dead by then.
        doubled: The network delivers it twice.
        paused: A process stands still for a minute at a point.
    """

    source: random.Random
    tell: Callable[[str, str], None]
    crash: float = 0.0
    nth: int = 0
    lost_requests: float = 0.0
    lost_replies: float = 0.0
    late: float = 0.0
    doubled: float = 0.0
    refused: float = 0.0
    paused: float = 0.0
    over: bool = False
    passed: int = field(default=0, init=False)

    def dies(self, where: str, who: str) -> bool:
        """Tell whether `who` dies here; counts the point."""
        if self.over:
            return False
        self.passed += 1
        if self.passed != self.nth and not (self.crash and self.source.random() < self.crash):
            return False
        self.tell(f"crash {where}", who)
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
        faults.crash = source.choice([0.01, 0.03, 0.08])
    faults.lost_requests = source.choice([0, 0, 0.05, 0.2])
    faults.lost_replies = source.choice([0, 0, 0.05, 0.2])
    faults.late = source.choice([0, 0, 0.05, 0.1])
    faults.doubled = source.choice([0, 0.1, 0.3])
    faults.refused = source.choice([0, 0, 0, 0.05])
    faults.paused = source.choice([0, 0, 0.01, 0.03])
    return faults
