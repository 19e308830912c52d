"""
The manager's copy of what is not over yet, refreshed by parts.

The ledger is the truth, and this copy is filled from it: in whole at the start and when another
process has written. At other times a round reads only the runs and instances that a commit of this
process has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import JobState
from fleetform.model.instance import Allocation, Instance
from fleetform.model.override import Override
from fleetform.model.rollout import Template
from fleetform.model.run import Attempt, Job, Run, RunState, RunUid
from fleetform.model.scaling import Scaling
from fleetform.model.scheduler_state import Outcome, SchedulerState
from fleetform.model.volume import NetworkVolume

T = TypeVar("T")


@dataclass(slots=True)
class Mirror:
    """Same names as `SchedulerState`, so that what reads a book reads this."""

    serial: int = 0
    runs: dict[RunUid, Run] = field(default_factory=dict)
    attempts: dict[RunUid, Attempt] = field(default_factory=dict)
    lingering_by_run: dict[str, tuple[Job, ...]] = field(default_factory=dict)
    instances: tuple[Instance, ...] = ()
    allocations_by_run: dict[str, tuple[Allocation, ...]] = field(default_factory=dict)
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    volume_fleets: Mapping[str, str] = field(default_factory=dict)
    volume_hosts: Mapping[str, frozenset[str]] = field(default_factory=dict)
    disks: Mapping[str, NetworkVolume] = field(default_factory=dict)
    leaving_volumes: frozenset[str] = frozenset()
    templates: Mapping[str, Template] = field(default_factory=dict)
    overrides: tuple[Override, ...] = ()
    queue_fleets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_queue: str = ""
    scaling: Mapping[str, Scaling] = field(default_factory=dict)
    hostless_fleets: frozenset[str] = frozenset()
    master_ports: dict[RunUid, int] = field(default_factory=dict)
    environment_uid: str = ""

    @property
    def lingering(self) -> tuple[Job, ...]:
        return tuple(job for jobs in self.lingering_by_run.values() for job in jobs)

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return tuple(one for many in self.allocations_by_run.values() for one in many)

    def as_scheduler_state(self) -> SchedulerState:
        users = {
            name: set() if volume.is_shared else self._disk_users(name, volume.attached_to)
            for name, volume in self.disks.items()
        }
        return SchedulerState(
            serial=self.serial,
            runs=self.runs,
            attempts=self.attempts,
            lingering=self.lingering,
            instances=self.instances,
            allocations=self.allocations,
            outcomes=self.outcomes,
            volume_fleets=self.volume_fleets,
            volume_hosts={**self.volume_hosts, **self._disk_hosts(users)},
            disks=self.disks,
            disks_in_use=frozenset(name for name, found in users.items() if found),
            leaving_volumes=self.leaving_volumes,
            templates=self.templates,
            overrides=self.overrides,
            queue_fleets=self.queue_fleets,
            default_queue=self.default_queue,
            scaling=self.scaling,
            hostless_fleets=self.hostless_fleets,
            master_ports=self.master_ports,
            environment_uid=self.environment_uid,
        )

    def replace(self, book: SchedulerState) -> None:
        """Take over a whole reading."""
        self.runs.clear()
        self.attempts.clear()
        self.lingering_by_run.clear()
        self.allocations_by_run.clear()
        self.outcomes.clear()
        self.master_ports.clear()
        self.environment_uid = book.environment_uid
        # Only a plan changes volumes and queues, and after a plan everything is read again.
        self.volume_fleets = book.volume_fleets
        self.volume_hosts = book.volume_hosts
        self.disks = book.disks
        self.leaving_volumes = book.leaving_volumes
        self.queue_fleets = book.queue_fleets
        self.default_queue = book.default_queue
        self.templates = book.templates
        self.scaling = book.scaling
        self.hostless_fleets = book.hostless_fleets
        self.merge((), None, book)

    def merge(
        self, uids: Iterable[RunUid], instances: Collection[str] | None, book: SchedulerState
    ) -> None:
        """
        Take over a partial reading: what `book` lacks of `uids` and `instances` is over.

        `instances` are the uids that were read; None: all.
        """
        for uid in uids:
            self.runs.pop(uid, None)
            self.attempts.pop(uid, None)
            self.lingering_by_run.pop(uid, None)
            self.allocations_by_run.pop(uid, None)
            self.master_ports.pop(uid, None)
        self.serial = book.serial
        self.runs.update(book.runs)
        self.attempts.update(book.attempts)
        self.outcomes.update(book.outcomes)
        self.master_ports.update(book.master_ports)
        if instances is None:
            self.instances = book.instances
        elif instances:
            self._merge_instances(instances, book.instances)
        self.overrides = book.overrides
        for run_uid, jobs in _grouped(book.lingering, lambda job: job.key.run_uid).items():
            self.lingering_by_run[run_uid] = tuple(jobs)
        for run_uid, held in _grouped(book.allocations, lambda one: one.run_uid).items():
            self.allocations_by_run[run_uid] = tuple(held)

    def _merge_instances(self, uids: Collection[str], found: Iterable[Instance]) -> None:
        by_uid = {one.uid: one for one in found}
        merged = {one.uid: one for one in self.instances} | by_uid
        has_new = len(merged) > len(self.instances)
        for uid in uids:
            if uid not in by_uid:
                merged.pop(uid, None)
        instances = merged.values()
        # What keeps its place keeps the order; to sort ten thousand takes longer than all else here.
        self.instances = tuple(
            sorted(instances, key=lambda one: (one.fleet, one.number)) if has_new else instances
        )

    def jobs_of(self, uid: str) -> Iterable[Job]:
        """Return the jobs of a run that hosts may still know, latest attempt and older ones."""
        attempt = self.attempts.get(RunUid(uid))
        if attempt is not None:
            yield from attempt.jobs
        yield from self.lingering_by_run.get(uid, ())

    def all_jobs(self) -> Iterable[Job]:
        for attempt in self.attempts.values():
            yield from attempt.jobs
        for jobs in self.lingering_by_run.values():
            yield from jobs

    def uses_disk(self, volume: str, instance_uid: str) -> bool:
        """Tell whether a job on an instance uses the disk of a volume, or may still."""
        return instance_uid in self._disk_users(volume, instance_uid)

    def _disk_users(self, volume: str, attached_to: str) -> set[str]:
        """Return the instances with a job that has not ended and mounts the volume."""
        found = set()
        for job in self.all_jobs():
            if not job.instance_uid or job.state is JobState.FINISHED:
                continue
            run = self.runs.get(RunUid(job.key.run_uid))
            # Of a run that is over only its hosts are known: it may have mounted any disk there.
            mounts = run is None or any(one.name == volume for one in run.template.volumes)
            if mounts and (run is not None or job.instance_uid == attached_to):
                found.add(job.instance_uid)
        return found

    def _disk_hosts(self, users: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
        """Name the hosts that may have each disk now: the one where a job uses it, or all that can."""
        return {
            name: frozenset(
                one.name
                for one in self.instances
                if one.uid in users[name]
                or (not users[name] and volume.may_be_at(one.provider, one.endpoint))
            )
            for name, volume in self.disks.items()
        }

    def occupied(self) -> set[str]:
        """Return the uids of instances that hold units, or still keep a record of some job."""
        kept = {job.instance_uid for job in self.all_jobs() if not job.forgotten}
        return kept | {one.instance_uid for one in self.allocations}

    def job(self, key: JobKey) -> Job | None:
        for job in self.jobs_of(key.run_uid):
            if job.key == key:
                return job
        return None

    def state_of(self, name: str) -> RunState | None:
        outcome = self.outcomes.get(name)
        return outcome.state if outcome else None


def _grouped(items: Iterable[T], key: Callable[[T], str]) -> dict[str, list[T]]:
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups
