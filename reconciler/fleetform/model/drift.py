"""
Drift: what the world has become since it was made, beside the tree and the ledger.

A difference between tree and ledger is a change of the plan. This is the other one, between the
ledger and the world. How a job ended is neither: it is an attempt's outcome.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.providers.contract.observed import (
        HostSeen,
        InstanceSeen,
        PlaceSeen,
        VolumeSeen,
    )

__all__ = [
    "GONE",
    "OTHER_DATA",
    "Drift",
    "DriftClass",
    "Noted",
    "Observed",
    "RecordedDrift",
    "Remedy",
    "expected_and_seen",
]

GONE = "gone"
OTHER_DATA = "another directory, with other data"
"""What is seen of a host or a directory that is not there."""


class DriftClass(enum.StrEnum):
    """
    How much a field binds. ENFORCED: it is as declared, or it is made so. FLOOR: it may be more,
    and less is shown. OBSERVED: nobody declares it; that it has changed is told.
    """

    ENFORCED = "enforced"
    FLOOR = "floor"
    OBSERVED = "observed"


class Remedy(enum.StrEnum):
    """
    What is done about it.

    APPLY: a plan with `--refresh` sets it right, and loses nothing by it. GREETING: whoever drives
    the runs next takes it in. DECIDE: a person must say what is meant. ACCEPT: nothing needs to be
    done; `apply --refresh-only` accepts the value that was seen.
    """

    APPLY = "apply"
    GREETING = "greeting"
    DECIDE = "decide"
    ACCEPT = "accept"


def expected_and_seen(path: str, expected: str, seen: str, when: str = "") -> str:
    """
    Write `directory: there (expected) → gone (seen 3m ago)`.

    A change of the same plan writes `gone → there`: the words say which side is which.
    """
    return f"{path}: {expected} (expected) → {seen} (seen{when and f' {when}'})"


@dataclass(frozen=True, slots=True)
class Drift:
    """
    One field of one resource that is not as it should be.

    `part` names the host or job that it is about, and is empty for the resource as a whole.
    `right_at_ms` is when it was last seen right, None where nobody has looked before;
    `changed_at_ms` when the world says that it changed. `by` is who, where that is known.
    """

    resource: ResourceKey
    field: str
    drift_class: DriftClass
    remedy: Remedy
    expected: str
    seen: str
    part: str = ""
    detail: str = ""
    """What follows from it and what to do, as a sentence; empty where the remedy says all."""
    right_at_ms: int | None = None
    changed_at_ms: int | None = None
    by: str = ""

    @property
    def path(self) -> str:
        """Where in the resource: `directory`, `hosts[local-0].agent`."""
        if not self.part:
            return self.field
        whole = "jobs" if self.resource.kind == "run" else "hosts"
        return f"{whole}[{self.part}].{self.field}"


@dataclass(frozen=True, slots=True)
class RecordedDrift:
    """
    A drift that the ledger remembers, until a look or a correction shows that it is healed.

    `found_at_ms` is when it was seen first, `seen_at_ms` when it was seen last.
    """

    drift: Drift
    found_at_ms: int
    seen_at_ms: int

    @property
    def place(self) -> tuple[ResourceKey, str]:
        return self.drift.resource, self.drift.path


@dataclass(frozen=True, slots=True)
class Noted:
    """A value that was seen and found right, and when it was last seen so."""

    value: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Observed:
    """
    One look at the world, and what was known of it before.

    Attributes:
        at_ms: Unix milliseconds.
        instances: All that bear the environment's uid.
        hosts: What those say that answer, by instance uid.
        places: What is where volumes should be, by the volume's name.
        volumes: All that bear the environment's mark, as far as they can be found.
        noted: What was right the last time, by resource, then by path of the field.
        recorded: Drifts of earlier looks that were not seen healed since.
        known_runs: Uids among the hosts' records that the ledger knows.
        moving: Uids of what was made, changed or let go while this look was taken.
        changed: The last change of a resource through us: who, and when.
    """

    at_ms: int
    instances: tuple[InstanceSeen, ...] = ()
    hosts: Mapping[str, HostSeen] = field(default_factory=dict)
    places: Mapping[str, PlaceSeen] = field(default_factory=dict)
    volumes: tuple[VolumeSeen, ...] = ()
    noted: Mapping[ResourceKey, Mapping[str, Noted]] = field(default_factory=dict)
    recorded: tuple[RecordedDrift, ...] = ()
    known_runs: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    changed: Mapping[ResourceKey, Noted] = field(default_factory=dict)
