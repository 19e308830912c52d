"""How the scheduler orders and holds back, beyond what each run says of itself."""

from __future__ import annotations

from dataclasses import dataclass

Reservations = tuple[()]
"""Instances set apart for a window of time. None can be declared yet, so there is one value."""


@dataclass(frozen=True, slots=True)
class Policies:
    """
    Rules of one environment's queue.

    Attributes:
        backfill: While a run waits for room, runs behind it may use what cannot delay it; see
            `holds`. False: nothing behind it starts on its fleet, whatever is free there.
    """

    backfill: bool = True
