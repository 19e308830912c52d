"""
Overrides: decisions of a person for a limited time, with a reason and an end.

The controller makes those of kind QUARANTINE, which have no end: a person must look at the host.
Break glass: it outranks git, shows in every plan, and is gone when its time is up or somebody
lifts it. It is a row of the ledger, never a document.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from fleetform.agents.protocol.states import TAKEN_AWAY
from fleetform.model.selection import Selection
from fleetform.spec.desired import ResourceKey

__all__ = ["EMERGENCY", "Override", "OverrideKind", "PastOverride", "PutInForce", "holding",
           "is_emergency_end", "quarantine_of"]  # fmt: skip

EMERGENCY = "emergency"
"""The cause of a run that an override of kind STOP has ended."""

_STOP_SENTENCE = "emergency stop"


class OverrideKind(enum.StrEnum):
    """
    STOP: these runs end and do not start again. DRAIN: these fleets or hosts get nothing more.
    PAUSE: nothing starts. FREEZE: no plan is applied. THAW: freeze windows hold nothing.
    TAKEOVER: `serve` rests while a person works by hand. QUARANTINE: no new job is placed on this
    host, because it is broken; see `controllers.host_health`.
    """

    STOP = "stop"
    DRAIN = "drain"
    PAUSE = "pause"
    FREEZE = "freeze"
    THAW = "thaw"
    TAKEOVER = "takeover"
    QUARANTINE = "quarantine"


_DRAINS = frozenset({OverrideKind.DRAIN, OverrideKind.QUARANTINE})


@dataclass(frozen=True, slots=True)
class Override:
    """
    One override that was not lifted.

    Attributes:
        number: Of its row; what `lift` names.
        target: An address or glob that it is about, `run/train`, `fleet/gpu`, `host/gpu-0`; empty
            for all. A sweep's name stands for all its elements.
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

    def stops(self, name: str, parent: str = "") -> bool:
        """Tell whether it ends this run and keeps it from starting."""
        return self.kind is OverrideKind.STOP and _selection(self.target).selects(
            ResourceKey("run", name), parent
        )

    def drains(self, fleet: str, host: str) -> bool:
        """Tell whether it keeps work off this host of this fleet."""
        return self.kind in _DRAINS and (
            fnmatchcase(f"fleet/{fleet}", self.target) or fnmatchcase(f"host/{host}", self.target)
        )

    @property
    def title(self) -> str:
        """Name it in a few words: `emergency stop of run/train by ada@node1`."""
        of = f" of {self.target}" if self.target else ""
        what = "" if self.kind is OverrideKind.QUARANTINE else "emergency "
        return f"{what}{self.kind}{of} by {self.who}"

    @property
    def sentence(self) -> str:
        return f"{self.title}: {self.reason}"

    @property
    def reason_and_end(self) -> str:
        """Say why, and with which command a person ends it, of an override without an end of its own."""
        if self.reason.startswith(TAKEN_AWAY):
            # A lift would only place jobs on a host that ends in minutes.
            return f"{self.reason}; the quarantine ends with the host, which `fleetform apply` or demand replaces"
        return f"{self.reason}; `fleetform emergency lift {self.number}` ends it"


@dataclass(frozen=True, slots=True)
class PastOverride:
    """One override of the history; `lifted_at_ms` None for one that ran out, or still holds."""

    override: Override
    lifted_at_ms: int | None = None
    lifted_by: str = ""


@dataclass(frozen=True, slots=True)
class PutInForce:
    """What was put in force at once, and the runs whose end was asked for with it, by number."""

    overrides: tuple[Override, ...]
    ending: tuple[str, ...] = ()


def holding(overrides: Iterable[Override], now_ms: int) -> tuple[Override, ...]:
    """Return those that are in force at `now_ms`, in their order."""
    return tuple(one for one in overrides if one.holds_at(now_ms))


def quarantine_of(overrides: Iterable[Override], host: str) -> Override | None:
    """Return the first quarantine of a host, or None; a quarantine ends only when it is lifted."""
    target = f"host/{host}"
    return next(
        (one for one in overrides if (one.kind, one.target) == (OverrideKind.QUARANTINE, target)),
        None,
    )


def is_emergency_end(stop_requested: str) -> bool:
    """Tell from what asked for a run's end whether an override did."""
    return stop_requested.startswith(_STOP_SENTENCE)


# A target is asked once for each run that waits, and there are few of them.
@lru_cache(maxsize=256)
def _selection(target: str) -> Selection:
    return Selection([target])
