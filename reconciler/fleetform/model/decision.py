"""What `schedule` and `lifecycle` decide, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.model.run import RunUid
    from fleetform.model.scaling import ScaleRequest


@dataclass(frozen=True, slots=True)
class Share:
    """
    What one rank gets of one instance.

    `instance_generation` and `boot_id` are what was seen: a miss on either makes the whole
    gang's placement miss.
    """

    rank: int
    instance_uid: str
    instance_generation: int
    boot_id: str
    cpu_millicores: int
    memory_bytes: int
    memory_limited: bool
    disk_bytes: int
    gpus: tuple[str, ...] = ()
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """A gang's start: all ranks or none."""

    run_uid: RunUid
    run_generation: int
    attempt: int
    shares: tuple[Share, ...]
    master_port: int | None = None
    """Where rank 0 of a run on several nodes listens; None for a run on one node."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """
    One reason why a run waits; a run gives all of its reasons at once.

    code: `dependency`, `not-before`, `concurrency`, `resources`, `gang`, `fleet-not-ready`,
    `recovering`, `priority`, `stopped`, `override`, `volume-leaving`, `volume-hosts`,
    `queue`, `account`, `no-hosts`, `master-port`, `scaling`. `detail` is a sentence with figures.
    """

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Impossible:
    """No declared capacity, in any state, can ever satisfy this run: it ends at once."""

    run_uid: RunUid
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decisions:
    """
    One round of scheduling.

    `starts` in the order they were decided. `waiting` has every run of the queue that did not
    start. `aborts` are runs whose dependencies can no longer be met, with the sentence.
    `next_at_ms` is when a round is due even if nothing happens, or None. `scale` has the hosts that
    waiting runs need, by fleet in order of name. `spare` are the uids of hosts beyond what fleets keep
    that have no jobs and that no waiting run needs, those first that leave first.
    """

    starts: tuple[Placement, ...] = ()
    waiting: Mapping[RunUid, tuple[Waiting, ...]] = field(default_factory=dict)
    impossible: tuple[Impossible, ...] = ()
    aborts: Mapping[RunUid, str] = field(default_factory=dict)
    next_at_ms: int | None = None
    scale: tuple[ScaleRequest, ...] = ()
    spare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do now."""


@dataclass(frozen=True, slots=True)
class AllPrepared:
    """Every rank is prepared under unchanged boots: the attempt may pass its commit point."""


@dataclass(frozen=True, slots=True)
class StopGang:
    """End all ranks that still may run, for this reason."""

    cause: str
    message: str


@dataclass(frozen=True, slots=True)
class Requeue:
    """
    Place the same run again with a new attempt.

    `counted` is False where no code of the run ran (a rank could not prepare).
    """

    not_before_ms: int
    cause: str
    message: str
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Finish:
    """The run has ended: `state` is final."""

    state: str
    cause: str
    message: str


Next = Wait | AllPrepared | StopGang | Requeue | Finish
