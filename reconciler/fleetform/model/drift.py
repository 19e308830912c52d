"""
Drift: changes of the actual state outside fleetform.

A difference between tree and ledger is a change of the plan. This is the other one, between the
ledger and the world. How a job ended is neither: it is an attempt's outcome.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fleetform.model.existence import CloudPlace
    from fleetform.providers.contract.observed import (
        HostSeen,
        InstanceSeen,
        PlaceSeen,
        VolumeSeen,
    )
    from fleetform.providers.contract.volumes import DiskSeen
    from fleetform.spec.desired import ResourceKey
__all__ = [
    "ATTACHED_TO_TEXT",
    "ATTACHMENT",
    "CREATION",
    "GONE",
    "NOT_DRIFT",
    "OTHER_DATA",
    "TABLE",
    "Drift",
    "DriftClass",
    "DriftRow",
    "Noted",
    "Observed",
    "RecordedDrift",
    "Remedy",
    "expected_and_seen",
]


GONE = "gone"
CREATION = "creation"
"""A field that no look records: the records of the provider say it at any time, and the ledger when it is over."""

ATTACHMENT = "attachment"
"""The field of a volume that says which instance has its disk."""

ATTACHED_TO_TEXT = "attached to "
"""What is seen there before the cloud's id of an instance that is no host."""

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
    One reading of the actual state, and what was known of it before.

    Attributes:
        at_ms: Unix milliseconds.
        instances: All that bear the environment's uid.
        hosts: What those say that answer, by instance uid.
        places: What is where volumes should be, by the volume's name.
        volumes: All that bear the environment's mark, as far as they can be found.
        disks: The disks of network volumes, by the volume's name; None: it is gone. One whose cloud
            does not answer is missing.
        noted: What was right the last time, by resource, then by path of the field.
        recorded: Drifts of earlier looks that were not seen healed since.
        known_runs: Uids among the hosts' records that the ledger knows.
        clouds: All instances that clouds list, by account and region; absent where a cloud was not asked.
        cut_off: Hosts whose creation was cut off, by uid: until when their cloud is given time to list them; None: that time has not begun.
        images: The image that a fleet's parameter names now, by the uid of one of its instances.
        unlisted: Why clouds did not answer, a sentence for each account and region, and for each disk.
        moving: Uids of what was made, changed or let go while this look was taken.
        changed: The last change of a resource through us: who, and when.
    """

    at_ms: int
    instances: tuple[InstanceSeen, ...] = ()
    hosts: Mapping[str, HostSeen] = field(default_factory=dict)
    places: Mapping[str, PlaceSeen] = field(default_factory=dict)
    volumes: tuple[VolumeSeen, ...] = ()
    disks: Mapping[str, DiskSeen | None] = field(default_factory=dict)
    clouds: Mapping[CloudPlace, Sequence[InstanceSeen]] = field(default_factory=dict)
    cut_off: Mapping[str, int | None] = field(default_factory=dict)
    images: Mapping[str, str] = field(default_factory=dict)
    unlisted: tuple[str, ...] = ()
    noted: Mapping[ResourceKey, Mapping[str, Noted]] = field(default_factory=dict)
    recorded: tuple[RecordedDrift, ...] = ()
    known_runs: frozenset[str] = frozenset()
    moving: frozenset[str] = frozenset()
    changed: Mapping[ResourceKey, Noted] = field(default_factory=dict)


# The fields of the actual state that are compared, by kind, with the class of each.
# `drift` and `docs/drift.md` use this table. A correction that would destroy something never happens by
# itself.


class DriftRow(NamedTuple):
    """
    One field. `declared_by` is the field of the document that asks for it, empty where none does.

    `claim` says what holds when nothing has drifted, `done` what happens otherwise, and `cure`
    what a person does where one must decide; `NAME` in it stands for the resource's name.
    """

    drift_class: DriftClass
    remedy: Remedy
    declared_by: str
    claim: str
    done: str
    cure: str = ""


_ENFORCED, _FLOOR, _OBSERVED = DriftClass.ENFORCED, DriftClass.FLOOR, DriftClass.OBSERVED

TABLE: Mapping[tuple[str, str], DriftRow] = {
    ("fleet", "host"): DriftRow(
        _ENFORCED, Remedy.APPLY, "nodes",
        "each host that was created exists",
        "the host is created again, an instance of a cloud under another uid; jobs of the missing host are lost",
    ),
    ("fleet", "agent"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "the agent of a host answers, unless it has ended because it had no work",
        "the agent is started again, and finds the jobs that still run",
    ),
    ("fleet", "connection"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "a host over SSH answers",
        "the next connection of a controller records it; its jobs keep their state until then",
    ),
    ("fleet", "ledger"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "a host follows this ledger, and knows no newer state",
        "nothing is started or removed",
        "put the newest ledger back, or run `fleetform state rebuild`, which asks the hosts",
    ),
    ("fleet", "cpu"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.cpu",
        "a host has the CPUs that placements rely on",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "memory"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.memory",
        "a host has the memory that placements rely on",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "gpus"): DriftRow(
        _FLOOR, Remedy.GREETING, "local.gpu",
        "a host has the GPUs that placements rely on, by their UUIDs",
        "the next connection of a controller records it; running jobs continue",
    ),
    ("fleet", "boot"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "a host has not rebooted since the last connection",
        "the next connection of a controller records it: jobs of the earlier boot have ended, and"
        " that is the outcome of their attempts",
    ),
    ("fleet", "install"): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "the agent of a host has its records",
        "the next connection of a controller records it: jobs of the earlier install are lost",
    ),
    ("fleet", CREATION): DriftRow(
        _OBSERVED, Remedy.GREETING, "",
        "the creation of each host on a cloud is finished: its instance is in the ledger",
        "`fleetform apply` or a controller adopts the instance, or creates it if there is none",
    ),
    ("fleet", "unknown"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every host with the uid of the environment is in the ledger",
        "the host is not changed",
        "`fleetform state rebuild` adopts it with its running jobs; of a cloud, `fleetform fleet adopt INSTANCE` adopts one"
        " instance, and `fleetform fleet terminate INSTANCE` ends it",
    ),
    ("fleet", "image"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the parameter of a fleet on AWS still names the image that its hosts boot from",
        "the hosts keep their image, and hosts that are created later get it too",
        "another number for `image_renewal` of the fleet takes the newest image;"
        " `fleetform apply --refresh-only` accepts the difference",
    ),
    ("volume", "directory"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the directory that was created exists, and is the same one",
        "the volume is blocked, because an empty directory would hide the loss of the data",
        "put the data back, or start empty with `fleetform apply --refresh --replace volume/NAME`",
    ),
    ("volume", "disk"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "backend",
        "the disk of a network volume exists",
        "the volume is blocked, because an empty disk would hide the loss of the data",
        "start with an empty disk, or with a snapshot (`aws.snapshot_id`):"
        " `fleetform apply --allow-destroy --replace volume/NAME`",
    ),
    ("volume", ATTACHMENT): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "the disk of a network volume is attached to hosts that mount it only",
        "the volume is blocked, because its runs cannot have the disk",
        "detach the disk from the other instance",
    ),
    ("volume", "mark"): DriftRow(
        _ENFORCED, Remedy.APPLY, "",
        "the directory contains the marker of its owner",
        "the marker is written again; the data is unchanged",
    ),
    ("volume", "claim"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "",
        "no other environment has marked the directory",
        "the volume is blocked: the marker names the other owner",
        "give the volume another path, or release it in the other environment",
    ),
    ("volume", "path"): DriftRow(
        _ENFORCED, Remedy.DECIDE, "path",
        "the volume is at its declared path",
        "the volume is blocked, because a second volume would be created",
        "move it back, or declare its current path",
    ),
    ("volume", "owner"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the owner of the directory has not changed",
        "it is reported until it is accepted",
        "`fleetform apply --refresh-only` accepts it",
    ),
    ("volume", "mode"): DriftRow(
        _OBSERVED, Remedy.ACCEPT, "",
        "the permissions of the directory have not changed",
        "it is reported until it is accepted",
        "`fleetform apply --refresh-only` accepts it",
    ),
    ("run", "record"): DriftRow(
        _OBSERVED, Remedy.DECIDE, "",
        "every job that a host knows is in the ledger",
        "the job is shown and never ended",
        "`fleetform state rebuild` adopts it",
    ),
}  # fmt: skip

NOT_DRIFT: Mapping[tuple[str, str], str] = {
    ("run", "state"): "a job that was killed, lost or ended early is the outcome of its"
    " attempt: `retry` decides what follows, and `fleetform why` shows how it ended",
    ("run", "output"): "the output of a run is stored next to the ledger and not compared",
    ("volume", "content"): "runs may write into their volumes",
}
"""Differences that are not drift, with the reason."""
