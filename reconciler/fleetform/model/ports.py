"""
What the rooms that act need of the drivers below them, as protocols.

Only `app` knows which driver stands behind a port. The ledger's calls are synchronous and
run behind one asynchronous gate: on the writer's thread in production, inline in simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

from fleetform.model.cloud_ledger import CloudLedger
from fleetform.model.refusals import (
    FenceLost,
    LedgerOutgrown,
    LedgerUnavailable,
    PolicyRefused,
    StalePlan,
)
from fleetform.model.run_state import Outdated

# A port is annotations: whoever fills or uses one imports its values. Together they take 60 ms.
if TYPE_CHECKING:
    from fleetform.agents.protocol.host_report import GpuProcess
    from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
    from fleetform.model.apply import Accepted, ApplyRecord, Begun, StepOutcome
    from fleetform.model.cost import Spending
    from fleetform.model.decision import Next, Placement
    from fleetform.model.drift import Noted, RecordedDrift
    from fleetform.model.history import (
        HistoryEntry,
        LoggedEvent,
        NoticeFacts,
        OperationRecord,
        Touch,
    )
    from fleetform.model.ledger import Standing
    from fleetform.model.lineage import InputChange
    from fleetform.model.live import Live
    from fleetform.model.offers import TriedOffer
    from fleetform.model.override import Override, OverrideKind, PastOverride, PutInForce
    from fleetform.model.overview import Overview
    from fleetform.model.plan import Plan, Step
    from fleetform.model.rollout import Exchange, Template
    from fleetform.model.run import ArrayFacts, Attempt, Run, RunState, RunUid
    from fleetform.model.scheduler_state import SchedulerState
    from fleetform.model.volume import Snapshot
    from fleetform.providers.contract.observed import HostSeen
    from fleetform.spec.desired import ResourceKey

__all__ = [
    "BlobStore",
    "Clock",
    "FenceLost",
    "Gate",
    "HostNews",
    "Ids",
    "InstanceMark",
    "Ledger",
    "LedgerOutgrown",
    "LedgerUnavailable",
    "LogStore",
    "PolicyRefused",
    "Progress",
    "Reader",
    "RunHistory",
    "RunQuery",
    "StalePlan",
]

T = TypeVar("T")


class Clock(Protocol):
    """Wall time for display and schedules; `boot_ms` counts suspend, for leases."""

    def now_ms(self) -> int: ...
    def boot_ms(self) -> int: ...


class Ids(Protocol):
    """Mints uids: 32 hex digits, never used twice."""

    def uid(self) -> str: ...


class Gate(Protocol):
    """Runs one call on the ledger; calls are carried out in the order they were given."""

    async def __call__(self, call: Callable[[], T], /) -> T: ...


@dataclass(frozen=True, slots=True)
class RunHistory:
    """
    One run with all its attempts, for people.

    `host_names` has the name of every instance that ever was, by uid: also of those that are gone.
    `stale`: what changed of its document since; `outdated`: how the results that it started
    from differ from those of now.
    """

    run: Run
    attempts: tuple[Attempt, ...]
    archived: bool
    commit: str = ""
    execution_digest: str = ""
    host_names: Mapping[str, str] = field(default_factory=dict)
    stale: Outdated = Outdated.NO
    outdated: tuple[InputChange, ...] = ()


@dataclass(frozen=True, slots=True)
class RunQuery:
    """
    Some of the runs, in order of submission.

    Attributes:
        after: Number of the run behind which to begin.
        limit: At most so many.
        states: Only runs in one of these; none: in whichever.
        parent: Only elements of this sweep or array; None: all runs.
        archived: Also finished runs that were removed from the configuration.
    """

    after: int
    limit: int
    states: tuple[RunState, ...] = ()
    parent: str | None = None
    archived: bool = False


class Reader(Protocol):
    """Reads the ledger without changing it; what CLI and API show."""

    def read_standing(self) -> Standing:
        """Read what the ledger says of itself; costs one row."""
        ...

    def read_live(self, known: Mapping[ResourceKey, str] | None = None) -> Live:
        """
        Read what exists, in one state of the ledger.

        Given the digests that are declared, rows that are as they should be are read no further
        than that; see `model.live.Rows`.
        """
        ...

    def read_book(
        self, only: Sequence[RunUid] | None = None, instances: Sequence[str] | None = None
    ) -> SchedulerState:
        """
        Read what is not over.

        With `only`, the runs, attempts, lingering jobs, allocations and outcomes of these runs
        alone, at a cost that depends on their number only; what is said of volumes is left out.
        A run of `only` that is missing from the answer's `runs` is over. With `instances`, the
        instances with these uids alone; one that is missing from the answer is terminated.
        """

    def read_runs(
        self, names: Sequence[str] | None = None, *, earlier: bool = False
    ) -> tuple[RunHistory, ...]:
        """Read runs in the order of submission; `earlier`: also executions before a re-run."""

    def read_run_page(self, query: RunQuery) -> tuple[RunHistory, ...]:
        """Read some of the runs, at a cost that depends on their number."""

    def read_array(self, name: str) -> ArrayFacts:
        """Read what the elements of an array have in common; it has had one run at least."""

    def read_events(
        self, *, run: str | None = None, after: int = 0, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]: ...
    def read_resource_events(
        self, key: ResourceKey, *, limit: int = 1000
    ) -> tuple[LoggedEvent, ...]:
        """Read the latest events of one resource, oldest first; a sweep's with its elements'."""

    def read_overview(self) -> Overview:
        """Count runs, hosts and open work, and name the first that need attention."""
        ...

    def read_spending(self) -> Spending:
        """Read how long hosts of clouds existed, and which jobs ran on them."""
        ...

    def read_plan(self, digest: str) -> bytes | None: ...
    def find_digests(self, prefix: str) -> tuple[str, ...]:
        """Name the plans whose digest begins so, the latest first: two at most."""

    def read_history(
        self, *, limit: int = 50, applies_only: bool = False
    ) -> tuple[HistoryEntry, ...]:
        """Read what was planned and applied, newest first."""

    def read_operations(self, apply_uid: str) -> tuple[OperationRecord, ...]: ...
    def read_touches(self, key: ResourceKey, *, limit: int = 100) -> tuple[Touch, ...]:
        """Read the applies that did something to the resource of this name, newest first."""

    def read_applies(self, *, limit: int = 50) -> tuple[ApplyRecord, ...]: ...
    def read_applies_of(self, digest: str) -> tuple[ApplyRecord, ...]:
        """Read every apply of one plan, newest first."""

    def read_apply(self, uid: str) -> ApplyRecord | None:
        """Read one apply by its uid; None where the ledger has none."""

    def read_noted(self) -> Mapping[ResourceKey, Mapping[str, Noted]]:
        """Read what was right at the last refresh, by resource and path."""

    def read_last_changes(self) -> Mapping[ResourceKey, Noted]:
        """Read who has last changed each fleet and volume through us, and when."""

    def read_known_runs(self, uids: Iterable[str]) -> frozenset[str]:
        """Tell which of these are uids of runs of this ledger."""

    def read_known_instances(self, uids: Iterable[str]) -> frozenset[str]:
        """Tell which of these are uids of instances that this ledger has or had."""

    def read_offers(self, fleet: str) -> tuple[TriedOffer, ...]:
        """Read the offers of a fleet on a cloud in the order in which they are tried."""

    def read_overrides(self) -> tuple[Override, ...]:
        """Read the overrides that were not lifted, by number; some may be out of date."""

    def read_snapshots(self) -> tuple[Snapshot, ...]:
        """Read the snapshots of volumes, newest first."""

    def read_past_overrides(self, *, limit: int | None = 50) -> tuple[PastOverride, ...]:
        """Read the newest, newest first, also those that were lifted or ran out; None: all."""

    def serial(self) -> int:
        """
        A number that changes when another connection commits, and not by our own commits.

        Cheap enough to poll every few milliseconds (SQLite: PRAGMA data_version).
        """

    def glance(self) -> int | None:
        """
        Return the serial if that takes microseconds, for a caller that must not wait; and raises nothing.

        None where it does not (a server is asked, somebody is writing, something is wrong): the
        serial has to be asked for then, behind the gate.
        """

    def commits(self) -> int:
        """
        How many commits there have been, everybody's: what a reading calls its `serial`.

        Who has heard a higher number than this has heard it from a newer state of the ledger.
        """

    def close(self) -> None:
        """Close the connection; nothing else is called after it."""


class Ledger(Reader, CloudLedger, Protocol):
    """
    The record of what was decided and seen. Every call is one transaction.

    Calls with a `fence` raise `FenceLost` when a newer one has been taken: a manager gives its own
    with everything that it writes. Where it may be left out, others write too.
    """

    def take_fence(self, *, who: str, now_ms: int) -> int:
        """Become the manager of runs: fence + 1. Call it holding the environment's lock."""

    # -- plans ----------------------------------------------------------------------------

    def accept(
        self, plan: Plan, body: bytes, *, who: str, now_ms: int, owner: str = ""
    ) -> Accepted:
        """
        Enter a plan, its operations, and the mark on every touched resource.

        `owner` is the account that its runs run as where hosts run jobs as their owner; empty: that
        of the person in `who`.

        Raises:
            StalePlan: A predicate fails; nothing has been written.
            PolicyRefused: An override or a freeze window forbids it at `now_ms`.
        """

    def unfinished_apply(self) -> tuple[Accepted, bytes] | None:
        """The oldest apply that is not finished, with its plan as `plan.serialize` wrote it."""

    def begin_steps(
        self, apply_uid: str, steps: Sequence[Step], *, fence: int | None = None, now_ms: int
    ) -> Mapping[str, Begun]:
        """
        Write the intent of steps that will have effects on hosts: before any of them does.

        Returns the uids by step key; a step begun before a crash gets the same ones again.

        `fleet.make` gets its instances' rows here; `fleet.update` and `fleet.remove` mark those
        terminating that are not wanted any more.
        """

    def finish_steps(
        self,
        apply_uid: str,
        steps: Sequence[Step],
        outcomes: Sequence[StepOutcome],
        *,
        fence: int | None = None,
        now_ms: int,
    ) -> Mapping[str, str]:
        """
        Write results, and the rows that the steps stand for; as long as `steps`.

        Returns the sentence why, by key, for each step that the ledger refuses although the world
        obeyed, because what it was planned for has moved since: it has failed.

        Steps that touch nothing but the ledger (`run.*`, `rules.set`) come here without a begin.
        """

    def finish_apply(
        self, apply_uid: str, *, state: str, summary: str, fence: int | None = None, now_ms: int
    ) -> None: ...

    # -- runs -----------------------------------------------------------------------------

    def commit_placements(
        self, placements: Sequence[Placement], *, fence: int, now_ms: int
    ) -> tuple[bool, ...]:
        """
        Reserve whole gangs; a gang that misses is left as it was. True where it holds.

        A gang misses also where a job of another one that has its master port may still run.

        A gang of one passes its commit point in the same transaction: its job is `starting`.
        """

    def commit_transitions(
        self, transitions: Sequence[tuple[RunUid, Next]], *, fence: int, now_ms: int
    ) -> None:
        """
        Carry out what `lifecycle` decided.

        `AllPrepared` passes the commit point, `StopGang` marks jobs to be stopped (gen + 1;
        jobs that no host knows end as `never_started` at once), `Requeue` ends the attempt and
        writes the next with its jobs, `Finish` ends attempt and run.
        """

    def commit_records(
        self,
        instance_uid: str,
        records: Sequence[JobRecord],
        cursor: Cursor | None,
        *,
        snapshot: bool,
        fence: int,
        now_ms: int,
    ) -> tuple[JobKey, ...]:
        """
        Record what a host says; returns the keys of jobs that moved.

        Transitions are monotone. A finished job frees its allocation. What a `snapshot` lacks
        stays as it is here: `commit_host` tells what that proves, and what was only sent is sent
        again. `cursor` and rows change in one transaction.
        """

    def commit_news(
        self, news: Sequence[HostNews], *, fence: int, now_ms: int
    ) -> tuple[JobKey, ...]:
        """
        Record what several hosts say, in one transaction; each as `commit_records` without a snapshot.

        Returns the keys of jobs that moved.
        """

    def commit_host(self, seen: HostSeen, *, fence: int, now_ms: int) -> tuple[JobKey, ...]:
        """
        Record a hello: boot, install, capacity, state ready. Returns jobs that this proves lost.

        Another boot or install id proves that jobs started under the old one are dead, and so do
        records that lack a job that was at work: they end as `lost`; those only reserved or
        prepared as `never_started`. Whatever its records tell of under the same boot goes on.

        Raises:
            LedgerOutgrown: The host proves this ledger older than another; it is recovering now.
        """

    def mark_instance(
        self,
        instance_uid: str,
        *,
        state: str,
        message: str,
        heard_at_ms: int | None = None,
        fence: int | None = None,
        now_ms: int,
    ) -> None:
        """Write down what is believed of an instance; `heard_at_ms`: when it was heard last, if known."""

    def mark_instances(self, marks: Sequence[InstanceMark], *, fence: int, now_ms: int) -> None:
        """Write down what is believed of several, in one transaction; each as `mark_instance`."""

    def end_unheard(self, keys: Sequence[JobKey], *, fence: int, now_ms: int) -> tuple[JobKey, ...]:
        """
        End jobs with a `SilenceLimit` whose hosts have heard nothing for that long; returns those ended.

        The caller has the proof. Their hosts still have a record of them. A job in state `unknown` is
        left as it is: its host has said that nothing may be ending it.
        """

    def note_gpu_processes(
        self, instance_uid: str, processes: Mapping[str, GpuProcess | None], *, fence: int
    ) -> None:
        """
        Record which GPUs of an instance are used outside fleetform, by uuid; None: not used.

        Uuids that the instance does not have are ignored, and GPUs that are missing stay as they are.
        """

    def retire(self, instance_uid: str, *, fence: int, now_ms: int) -> None:
        """
        Say that a terminating instance was released: what was still on it is lost.

        Nothing happens to one that a plan has taken back meanwhile.
        """

    def commit_exchanges(
        self,
        fleet: str,
        template: Template,
        moves: Sequence[Exchange],
        *,
        fence: int,
        now_ms: int,
    ) -> None:
        """
        Write down moves of hosts that are exchanged; what is otherwise by now is passed over.

        All are, where the fleet wants another than this `template` by now, or a step of it is open.
        """

    def mark_forgotten(self, keys: Sequence[JobKey], *, fence: int | None = None) -> None: ...

    # -- requests of people -----------------------------------------------------------------

    def put_overrides(
        self,
        kind: OverrideKind,
        targets: Sequence[str],
        *,
        reason: str,
        who: str,
        now_ms: int,
        until_ms: int | None,
        fence: int | None = None,
    ) -> PutInForce:
        """
        Put overrides in force, one a target; none means one for all.

        One of kind STOP asks in the same transaction for the end of the runs that it is about and
        that are at work. What waits for a place keeps waiting. No placement is committed from then
        on that an override forbids.
        """

    def lift_overrides(
        self, numbers: Sequence[int] | None, *, who: str, now_ms: int
    ) -> tuple[Override, ...]:
        """Lift overrides that are in force, or with None all of them; returns those it lifted."""

    def note_observations(
        self,
        right: Mapping[ResourceKey, Mapping[str, str]],
        recorded: Sequence[RecordedDrift] | None = None,
        *,
        at_ms: int,
    ) -> None:
        """
        Keep what was found right, and when; what is not named stays as noted.

        `recorded` is every drift that is to be remembered from now on; None: those of before.
        Needs no manager lease: what was seen is no decision.
        """

    def append_events(self, events: Sequence[LoggedEvent]) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class InstanceMark:
    """What is believed of an instance, and when it was heard last, if that is known."""

    instance_uid: str
    state: str
    message: str
    heard_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class HostNews:
    """What one host says of its jobs; `cursor` is None for an answer to a command."""

    instance_uid: str
    records: Sequence[JobRecord]
    cursor: Cursor | None = None


class LogStore(Protocol):
    """
    Output of jobs, kept after their hosts forgot them.

    Offsets count bytes the job ever wrote. What was dropped by a budget is a gap.
    """

    def size(self, run_uid: str, attempt: int, rank: int) -> int: ...
    def append(
        self, run_uid: str, attempt: int, rank: int, offset: int, data: bytes, *, complete: bool
    ) -> None: ...
    def is_complete(self, run_uid: str, attempt: int, rank: int) -> bool: ...
    def read(
        self, run_uid: str, attempt: int, rank: int, offset: int, limit_bytes: int
    ) -> tuple[bytes, int]:
        """Returns bytes and the next offset; a gap is read as one line that says its size."""


class BlobStore(Protocol):
    """Contents by SHA-256: files frozen at submission."""

    def path(self, sha256: str) -> str: ...
    def put_file(self, sha256: str, path: str) -> None:
        """Copy a file in; raises ValueError when its content is not `sha256`."""


class Progress(Protocol):
    """Who watches an apply or a serve: a live screen, plain lines, or JSON lines."""

    def step_started(self, step: Step) -> None: ...
    def step_finished(self, step: Step, error: str) -> None: ...
    def run_changed(self, run: Run, message: str) -> None:
        """A run has another state than before."""

    def output(self, run_name: str, rank: int, data: bytes) -> None:
        """A piece of a job's output, as it arrives."""

    def plan_finished(self, plan: Plan, state: str) -> None:
        """A plan was applied; `state` is `done` or `failed`."""

    def notice(self, text: str, **facts: Unpack[NoticeFacts]) -> None:
        """A sentence worth showing: a host that is silent, work handed over to `serve`."""
