"""
What waits for a place, and what stands in its way: the first input of a round.

Built from the book of the ledger, or from recorded traces by the bench. Nothing here decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetform.model.decision import Waiting
from fleetform.model.instance import Allocation
from fleetform.model.override import Override
from fleetform.model.run import FINAL, Attempt, AttemptState, Run, Template
from fleetform.model.scheduler_state import Outcome, SchedulerState
from fleetform.model.volume import NetworkVolume

if TYPE_CHECKING:
    from fleetform.model.scaling import Scaling

__all__ = ["Partition", "partition_of"]


_PLACELESS = frozenset({AttemptState.WAITING, AttemptState.FINISHED})
"""Attempts that hold no place of their concurrency group."""

END_MARGIN_MS = 30_000
"""
Added to `max_duration` and grace when an end is forecast: sending the start, and cleaning up
afterwards. Too small a margin delays the run that others are kept back for; too large a one
only forgoes some backfill.
"""


@dataclass(frozen=True, slots=True)
class Queue:
    """
    Attributes:
        runs: Runs that wait for a place, in any order; `Run.attempt` is the attempt to place.
        outcomes: Every run of the tree by name, for dependencies.
        concurrency: Places in use, by concurrency group; a group that is missing uses none.
        allocations: What is held of the instances now.
        ends_at_ms: When a running run gives back its units at the latest, by run uid; a run
            that is missing has no known end.
        unfinished: Uids of earlier runs of a waiting run's name (`Run.after_uid`) that are not
            over yet.
        volume_fleets: The fleet that each volume lies on, by its name; a volume that is
            missing does not narrow where its runs may go.
        volume_hosts: The names of the hosts that have it; a volume that is missing is on all
            hosts of its fleet.
        disks: Volumes whose disks no job uses: one host gets such a disk, of those in its zone.
        leaving_volumes: Those that are about to go: nobody begins with one mounted.
        overrides: What people have put above the tree; some may be out of date.
        delayed_since: When the delay of a run that is tried again began, by run uid.
        queue_fleets: The fleets of each declared queue, by its name; none: it leads to all.
        default_queue: The queue of runs that name none; empty: they have none.
        scaling: The limits of fleets whose hosts follow demand, by name.
        hostless_fleets: Fleets that have no hosts and get none before another apply.
        master_ports: Those that other runs on several nodes have.
        environment_uid: Its runs look for a port from one of its own on; see `master_ports`.
    """

    runs: tuple[Run, ...]
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)
    concurrency: Mapping[str, int] = field(default_factory=dict)
    allocations: Sequence[Allocation] = ()
    ends_at_ms: Mapping[str, int] = field(default_factory=dict)
    unfinished: frozenset[str] = frozenset()
    volume_fleets: Mapping[str, str] = field(default_factory=dict)
    volume_hosts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    disks: Mapping[str, NetworkVolume] = field(default_factory=dict)
    leaving_volumes: frozenset[str] = frozenset()
    overrides: Sequence[Override] = ()
    delayed_since: Mapping[str, int] = field(default_factory=dict)
    queue_fleets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_queue: str = ""
    scaling: Mapping[str, Scaling] = field(default_factory=dict)
    hostless_fleets: frozenset[str] = frozenset()
    master_ports: frozenset[int] = frozenset()
    environment_uid: str = ""


def queue_from_state(book: SchedulerState) -> Queue:
    """
    Pick out of the book what waits.

    A run that somebody asked to stop does not wait: `lifecycle` ends it.
    """
    waiting: list[Run] = []
    concurrency: dict[str, int] = {}
    ends: dict[str, int] = {}
    delayed: dict[str, int] = {}
    for uid, run in book.runs.items():
        attempt = book.attempts.get(uid)
        if attempt is None or attempt.state is AttemptState.WAITING:
            if not run.stop_requested and run.state not in FINAL:
                waiting.append(run)
                if run.not_before_ms and attempt is not None:
                    delayed[uid] = attempt.submitted_at_ms
            continue
        group = run.template.concurrency_group
        if group and attempt.state not in _PLACELESS:
            concurrency[group] = concurrency.get(group, 0) + 1
        end = _end_of(run, attempt)
        if end is not None:
            ends[uid] = end
    return Queue(
        runs=tuple(waiting),
        outcomes=book.outcomes,
        concurrency=concurrency,
        allocations=book.allocations,
        ends_at_ms=ends,
        unfinished=frozenset(run.after_uid for run in waiting if run.after_uid in book.runs),
        volume_fleets=book.volume_fleets,
        volume_hosts=book.volume_hosts,
        disks={name: one for name, one in book.disks.items() if name not in book.disks_in_use},
        leaving_volumes=book.leaving_volumes,
        overrides=book.overrides,
        delayed_since=delayed,
        queue_fleets=book.queue_fleets,
        default_queue=book.default_queue,
        scaling=book.scaling,
        hostless_fleets=book.hostless_fleets,
        master_ports=frozenset(book.master_ports.values()),
        environment_uid=book.environment_uid,
    )


def end_after(run: Run, started_at_ms: int) -> int | None:
    """Foretell when a run that starts then has given back its units at the latest, or None."""
    duration = run.template.max_duration_seconds
    if duration is None:
        return None
    return started_at_ms + (duration + run.template.stop_grace_seconds) * 1000 + END_MARGIN_MS


def _end_of(run: Run, attempt: Attempt) -> int | None:
    if attempt.started_at_ms is None:
        return None
    return end_after(run, attempt.started_at_ms)


# How the scheduler orders and holds back, beyond what each run says of itself.


@dataclass(frozen=True, slots=True)
class Policies:
    """
    Rules of one environment's queue.

    Attributes:
        backfill: While a run waits for room, runs behind it may use what cannot delay it; see
            `holds`. False: nothing behind it starts on its fleet, whatever is free there.
    """

    backfill: bool = True


# Which fleets a run may use: those of its queue, of its own `fleets`, and of its volumes.
# A queue stands for fleets as a partition of Slurm does. It only narrows the choice: nothing else of a
# queue is supported yet.


@dataclass(frozen=True, slots=True)
class Partition:
    """
    The fleets that a run may use, in its own order; `anywhere` if neither it nor its queue names any.

    `queue` is empty for a run without one. `leads_to` is what that queue names.
    """

    queue: str
    leads_to: tuple[str, ...]
    fleets: tuple[str, ...]
    anywhere: bool
    is_missing: bool = False
    """The run names a queue that the ledger does not have: it waits for that."""

    def allowed(self, there: Iterable[str], volume_fleets: Iterable[str]) -> tuple[str, ...]:
        """Return names of fleets that have instances: as they are listed, else by name."""
        names = sorted(there) if self.anywhere else self.fleets
        known, needed = frozenset(there), frozenset(volume_fleets)
        return tuple(
            name
            for name in dict.fromkeys(names)
            if name in known and all(name == other for other in needed)
        )

    def conflicts(self, template: Template, volumes: Mapping[str, str]) -> tuple[str, ...]:
        """
        Say why no fleet can be left, whatever hosts there are.

        `volumes` has the fleet of each volume that the run mounts: data goes nowhere else.
        """
        if len(set(volumes.values())) > 1:
            places = ", ".join(f"{name} on {fleet}" for name, fleet in sorted(volumes.items()))
            return (f"its volumes are on different fleets: {places}",)
        if self.anywhere:
            return ()
        if not self.fleets:
            named = ", ".join(template.fleets)
            only = f"queue {self.queue} allows {_fleets(self.leads_to)} only"
            return (f"{only}, and `fleets` of the run names {named}",)
        return tuple(
            f"volume {name} is on fleet {fleet}, which {self._excluder(template, fleet)} excludes"
            for name, fleet in sorted(volumes.items())
            if fleet not in self.fleets
        )

    def _excluder(self, template: Template, fleet: str) -> str:
        by_run = template.fleets and fleet not in template.fleets
        return "`fleets` of the run" if by_run else f"queue {self.queue}"

    def reasons(self) -> tuple[Waiting, ...]:
        """Say what a run that waits for room has to know of its queue."""
        if not self.leads_to or self.is_missing:
            return ()
        return (Waiting("queue", f"queue {self.queue} allows {_fleets(self.leads_to)} only"),)


def partition_of(template: Template, queue: Queue) -> Partition:
    """Choose by the run's own queue, else by the default one, if there is any."""
    name = template.queue or queue.default_queue
    leads_to = queue.queue_fleets.get(name, ())
    fleets = template.fleets or leads_to
    if template.fleets and leads_to:
        fleets = tuple(one for one in template.fleets if one in leads_to)
    return Partition(
        queue=name,
        leads_to=leads_to,
        fleets=fleets,
        anywhere=not template.fleets and not leads_to,
        is_missing=bool(name) and name not in queue.queue_fleets,
    )


def _fleets(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return f"fleet {names[0]}"
    return f"fleets {', '.join(names[:-1])} and {names[-1]}"
