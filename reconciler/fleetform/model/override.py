"""
What a person puts above the tree for a while, with a reason and an end.

Break glass: it outranks git, shows in every plan, and is gone when its time is up or somebody
lifts it. It is a row of the ledger, never a document.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["Override", "OverrideKind"]


class OverrideKind(enum.StrEnum):
    """
    STOP: these runs end and do not start again. DRAIN: these fleets or hosts get nothing more.
    PAUSE: nothing starts. FREEZE: no plan is applied. TAKEOVER: `serve` rests while somebody
    works by hand.
    """

    STOP = "stop"
    DRAIN = "drain"
    PAUSE = "pause"
    FREEZE = "freeze"
    TAKEOVER = "takeover"


@dataclass(frozen=True, slots=True)
class Override:
    """
    One override that is in force.

    Attributes:
        number: Of its row; what `lift` names.
        target: An address or glob that it is about, `run/train`, `fleet/gpu`; empty for all.
        since_ms: Unix milliseconds, as is `until_ms`; None for one that holds until it is lifted.
    """

    number: int
    kind: OverrideKind
    target: str
    reason: str
    who: str
    since_ms: int
    until_ms: int | None = None

    def holds_at(self, now_ms: int) -> bool:
        return self.until_ms is None or now_ms < self.until_ms
