"""
One round of scheduling: the queue in its order, each run placed, explained, or given up.

The order is priority (higher first), then age (FIFO by number). A run is considered for places
only when nothing else keeps it: no override does (`InForce`), its document wants it running, its
dependencies are met, its time has come, and its group has a place. The first that then lacks room on a fleet holds
instances there (`holds`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from fleetform.model import figures
from fleetform.model.decision import Decisions, Impossible, Placement, Share, Waiting
from fleetform.model.instance import SHOWN_AS_QUARANTINED, Instance, InstanceState
from fleetform.model.override import Override, OverrideKind, holding
from fleetform.model.run import Requirement, Run, RunUid, Template
from fleetform.schedule.dependencies import Dependencies
from fleetform.schedule.equivalence_class import EquivalenceClass, Pick, make_equivalence_class
from fleetform.schedule.holds import choose_hold
from fleetform.schedule.master_ports import PORTS, free_ports
from fleetform.schedule.queue import Policies, Queue, end_after, partition_of
from fleetform.schedule.reasons import impossible_reasons, waiting_reasons
from fleetform.schedule.scaling import Growth
from fleetform.schedule.space import Hold, build_fleets

_STOPPED = Waiting("stopped", "its document says `state: stopped`")

_NO_PORT = Waiting("master-port", f"all {len(PORTS)} ports for runs on several nodes are in use")

_SUCCESSOR = Waiting("dependency", "waits for the end of the earlier run of this name")

_ClassKey = tuple[str, tuple[str, ...], tuple[str, ...], int, Requirement, str, str]


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What keeps a run before room is looked at; `never` ends it."""

    reasons: tuple[Waiting, ...] = ()
    never: str = ""


class Round:
    """The mutable state of one round; `decide` may be called once."""

    def __init__(
        self, queue: Queue, instances: Iterable[Instance], policies: Policies, now_ms: int
    ) -> None:
        self._queue = queue
        self._policies = policies
        self._now_ms = now_ms
        self._overrides = InForce.of(queue.overrides, now_ms)
        there = tuple(self._overrides.drained(instances))
        nodes = sum(run.template.nodes for run in queue.runs) if queue.scaling else 0
        self._growth = Growth(queue.scaling, there, nodes)
        self._fleets = build_fleets(
            (*there, *self._growth.uncreated),
            queue.allocations,
            queue.ends_at_ms,
            now_ms,
            self._volume_hosts(),
        )
        self._dependencies = Dependencies(queue.outcomes)
        self._places = dict(queue.concurrency)
        # Volumes whose disks a run of this round has.
        self._disks_taken: set[str] = set()
        self._ports = free_ports(queue.environment_uid, queue.master_ports)
        self._next_port = next(self._ports, None)
        self._classes: dict[_ClassKey, EquivalenceClass] = {}
        self._full_groups: dict[tuple[str, int], tuple[Waiting, ...]] = {}
        self._headed: set[str] = set()
        """Fleets on which a run already holds instances."""
        self._next_at_ms = self._overrides.ends_at_ms

    def decide(self) -> Decisions:
        starts: list[Placement] = []
        impossible: list[Impossible] = []
        aborts: dict[RunUid, str] = {}
        waiting: list[tuple[Run, EquivalenceClass, tuple[Waiting, ...]]] = []
        for run in sorted(self._queue.runs, key=_rank):
            template = run.template
            equivalence = self._class_of(run)
            stopped = template.wanted == "stopped"
            if not stopped and (reasons := self._impossible_reasons(template, equivalence)):
                impossible.append(Impossible(run.uid, reasons))
                continue
            verdict = self._before_room(run)
            if verdict.never and not stopped:
                aborts[run.uid] = verdict.never
                continue
            if verdict.reasons or verdict.never:
                waiting.append((run, equivalence, verdict.reasons))
                continue
            placement = self._place(run, equivalence)
            if placement is None:
                waiting.append((run, equivalence, ()))
            else:
                starts.append(placement)
        claims = {}
        for run, equivalence, before in waiting if self._queue.scaling else ():
            if not before and not self._disks_in_use(run.template):
                claims[run.uid] = self._growth.claim(run, equivalence)
                if claims[run.uid]:
                    self._take_disks(run.template)
        return Decisions(
            starts=tuple(starts),
            waiting=self._explain(waiting, claims),
            impossible=tuple(impossible),
            aborts=aborts,
            next_at_ms=self._next_at_ms,
            scale=self._growth.requests(self._fleets),
            spare=self._growth.spare(self._fleets),
        )

    # -- before room ------------------------------------------------------------------------

    def _before_room(self, run: Run) -> _Verdict:
        """Collect what keeps a run from being considered at all."""
        template = run.template
        reasons = self._overrides.reasons(template)
        never = ""
        if template.wanted == "stopped":
            reasons += (_STOPPED,)
        if template.queue and template.queue not in self._queue.queue_fleets:
            reasons += (Waiting("queue", f"queue {template.queue} has not been applied"),)
        if run.after_uid in self._queue.unfinished:
            reasons += (_SUCCESSOR,)
        if template.nodes > 1 and self._next_port is None:
            reasons += (_NO_PORT,)
        if template.volumes and self._queue.leaving_volumes:
            reasons += self._leaving(template)
        if self._disks_taken and template.volumes:
            reasons += self._disks_in_use(template)
        if template.depends_on:
            verdict = self._dependencies.judge(template)
            never = verdict.never
            reasons += verdict.reasons
        # Before it has begun, nothing is left of a delay: the clock has been set back, and a
        # delay of seconds would last as long as that.
        begun_ms = self._queue.delayed_since.get(run.uid, self._now_ms)
        if begun_ms <= self._now_ms < run.not_before_ms:
            reasons += (self._not_before(run.not_before_ms),)
        if template.concurrency_limit is not None and template.concurrency_group:
            reasons += self._throttle(template.concurrency_group, template.concurrency_limit)
        return _Verdict(reasons, never) if reasons or never else _FREE

    def _leaving(self, template: Template) -> tuple[Waiting, ...]:
        names = sorted(self._queue.leaving_volumes & {mount.name for mount in template.volumes})
        return tuple(
            Waiting("volume-leaving", f"volume {name} is being removed by an apply")
            for name in names
        )

    def _volume_hosts(self) -> Mapping[str, frozenset[str]]:
        """Return the hosts that may have each volume; a disk may be on a host that is not created yet."""
        new = {
            name: frozenset(
                one.name
                for one in self._growth.uncreated
                if volume.may_be_at(one.provider, one.endpoint)
            )
            for name, volume in self._queue.disks.items()
        }
        known = self._queue.volume_hosts
        return {**known, **{name: known.get(name, frozenset()) | new[name] for name in new}}

    def _take_disks(self, template: Template) -> None:
        self._disks_taken.update(
            mount.name
            for mount in template.volumes
            if (disk := self._queue.disks.get(mount.name)) is not None and not disk.is_shared
        )

    def _disks_in_use(self, template: Template) -> tuple[Waiting, ...]:
        """A disk is on one host at a time: which one, the next round knows."""
        names = sorted(self._disks_taken & {mount.name for mount in template.volumes})
        return tuple(
            Waiting("volume-hosts", f"volume {name} is being attached to the host of another run")
            for name in names
        )

    def _not_before(self, at_ms: int) -> Waiting:
        if self._next_at_ms is None or at_ms < self._next_at_ms:
            self._next_at_ms = at_ms
        return Waiting(
            "not-before", f"starts in {figures.span(at_ms - self._now_ms)} at the earliest"
        )

    def _throttle(self, group: str, limit: int) -> tuple[Waiting, ...]:
        used = self._places.get(group, 0)
        if used < limit:
            return ()
        key = (group, limit)
        known = self._full_groups.get(key)
        if known is None:
            # Places are only taken within a round, so the sentence stays true enough to share;
            # the count is the one at which the first run was held back.
            known = (
                Waiting(
                    "concurrency",
                    f"concurrency limit reached: {used} of {limit} in group {group}",
                ),
            )
            self._full_groups[key] = known
        return known

    # -- room -------------------------------------------------------------------------------

    def _class_of(self, run: Run) -> EquivalenceClass:
        template = run.template
        mounts = template.volumes
        volumes = tuple([mount.name for mount in mounts]) if mounts else ()
        key = (
            template.queue,
            template.fleets,
            volumes,
            template.nodes,
            template.requirement,
            run.owner,
            template.creation_policy,
        )
        equivalence = self._classes.get(key)
        if equivalence is None:
            partition = partition_of(template, self._queue)
            needed = self._volume_fleets(volumes).values()
            allowed = partition.allowed(self._fleets, needed)
            fleets = tuple([self._fleets[name] for name in allowed])
            absent = tuple(name for name in partition.fleets if name not in self._fleets)
            equivalence = make_equivalence_class(
                template.requirement,
                template.nodes,
                fleets,
                partition,
                absent,
                run.owner,
                frozenset(volumes) & self._queue.volume_hosts.keys(),
                may_create=template.creation_policy != "reuse",
            )
            self._classes[key] = equivalence
        return equivalence

    def _volume_fleets(self, volumes: Iterable[str]) -> Mapping[str, str]:
        known = self._queue.volume_fleets
        return {name: known[name] for name in volumes if name in known}

    def _impossible_reasons(
        self, template: Template, equivalence: EquivalenceClass
    ) -> tuple[str, ...]:
        if equivalence.impossible is None:
            volumes = self._volume_fleets(mount.name for mount in template.volumes)
            conflicts = equivalence.partition.conflicts(template, volumes)
            equivalence.impossible = conflicts or impossible_reasons(equivalence)
        return equivalence.impossible

    def _place(self, run: Run, equivalence: EquivalenceClass) -> Placement | None:
        end_ms = end_after(run, self._now_ms)
        picks = equivalence.place(end_ms)
        if picks is None:
            self._hold(run, equivalence)
            return None
        shares = tuple([self._take(rank, pick, end_ms) for rank, pick in enumerate(picks)])
        group = run.template.concurrency_group
        if group:
            self._places[group] = self._places.get(group, 0) + 1
        self._take_disks(run.template)
        port = None
        if run.template.nodes > 1:
            port, self._next_port = self._next_port, next(self._ports, None)
        return Placement(run.uid, run.generation, max(run.attempt, 1), shares, port)

    def _take(self, rank: int, pick: Pick, end_ms: int | None) -> Share:
        space, take = pick.space, pick.take
        held = pick.fleet.take(space, take, pick.gpus, end_ms)
        if pick.loan is not None and pick.loan.spare is not None:
            pick.loan.spare.remove(held)
        return Share(
            rank=rank,
            instance_uid=space.instance.uid,
            instance_generation=space.instance.generation,
            boot_id=space.instance.boot_id,
            cpu_millicores=take.cpu_millicores,
            memory_bytes=take.memory_bytes,
            memory_limited=take.memory_limited,
            disk_bytes=take.disk_bytes,
            gpus=pick.gpus,
            blocks=take.blocks,
        )

    def _hold(self, run: Run, equivalence: EquivalenceClass) -> None:
        """Hold instances for a run that lacks room, on a fleet without other holds."""
        if equivalence.is_done_holding:
            return
        choices = [
            [
                pair
                for option in group
                if option.fleet.name not in self._headed
                for pair in option.able()
            ]
            for group in equivalence.groups
        ]
        chosen = choose_hold(run, choices, self._now_ms)
        if chosen is None:
            # Heads stay for the whole round: no later run of this class finds more.
            equivalence.is_done_holding = True
            return
        hold, spaces = chosen
        for name in dict.fromkeys(space.instance.fleet for space in spaces):
            self._headed.add(name)
            fleet = self._fleets[name]
            kept = spaces
            if not self._policies.backfill:
                # Runs behind stay off the whole fleet, and nothing is lent.
                hold = Hold(run, None)
                kept = tuple(space for space in fleet.spaces if space.is_ready)
            for space in kept:
                fleet.keep(space, hold)

    def _explain(
        self,
        waiting: Sequence[tuple[Run, EquivalenceClass, tuple[Waiting, ...]]],
        claims: Mapping[RunUid, tuple[Waiting, ...]],
    ) -> dict[RunUid, tuple[Waiting, ...]]:
        """Add what each class lacks at the end of the round; runs alike share one tuple."""
        lacking: dict[int, tuple[Waiting, ...]] = {}
        shared: dict[tuple[int, int], tuple[tuple[Waiting, ...], tuple[Waiting, ...]]] = {}
        explained: dict[RunUid, tuple[Waiting, ...]] = {}
        for run, equivalence, before in waiting:
            if claim := claims.get(run.uid):
                explained[run.uid] = claim
                continue
            lacks = lacking.get(id(equivalence))
            if lacks is None:
                lacks = self._without_hosts(equivalence) or waiting_reasons(equivalence)
                # What exists and has room is waited for, whatever could be created.
                lacks = lacking[id(equivalence)] = (
                    *lacks,
                    *(self._growth.limits(equivalence) if lacks else ()),
                )
            if not before:
                explained[run.uid] = lacks
                continue
            # The tuple itself is kept beside the joined one, or its id could be used again.
            known = shared.get((id(before), id(equivalence)))
            if known is None:
                known = shared[id(before), id(equivalence)] = (before, before + lacks)
            explained[run.uid] = known[1]
        return explained

    def _without_hosts(self, equivalence: EquivalenceClass) -> tuple[Waiting, ...]:
        """Say that no fleet of a class has hosts, nor gets one before another apply; empty where one may."""
        hostless = self._queue.hostless_fleets
        if equivalence.options or not hostless:
            return ()
        partition = equivalence.partition
        if partition.anywhere and self._fleets:
            return ()
        names = tuple(sorted(hostless)) if partition.anywhere else partition.fleets
        if not names or not hostless.issuperset(names):
            return ()
        return (
            *(Waiting("no-hosts", f"fleet {name} has `nodes: 0`") for name in names),
            *partition.reasons(),
        )


_FREE = _Verdict()


def _rank(run: Run) -> tuple[int, int, str]:
    return (-run.template.priority, run.number, run.uid)


# Overrides, as one round sees them.
# An override keeps a run waiting and never ends its wait: the run is considered again when the
# override is over, and the round names that moment.


@dataclass(frozen=True, slots=True)
class InForce:
    """
    The overrides that are in force now and concern scheduling.

    `paused` are the reasons that all runs share; `ends_at_ms` is when the first of them ends by
    itself, or None.
    """

    paused: tuple[Waiting, ...]
    stops: tuple[Override, ...]
    drains: tuple[Override, ...]
    ends_at_ms: int | None

    @classmethod
    def of(cls, overrides: Iterable[Override], now_ms: int) -> InForce:
        here = holding(overrides, now_ms)
        pauses = _of_kind(here, OverrideKind.PAUSE)
        stops = _of_kind(here, OverrideKind.STOP)
        drains = (
            *_of_kind(here, OverrideKind.QUARANTINE),
            *_of_kind(here, OverrideKind.DRAIN),
        )
        ends = [one.until_ms for one in (*pauses, *stops, *drains) if one.until_ms is not None]
        return cls(tuple(map(_waiting, pauses)), stops, drains, min(ends, default=None))

    def reasons(self, template: Template) -> tuple[Waiting, ...]:
        """Say what keeps a run from starting, whatever its document says."""
        if not self.stops:
            return self.paused
        stopped = (one for one in self.stops if one.stops(template.name, template.parent))
        return (*self.paused, *map(_waiting, stopped))

    def drained(self, instances: Iterable[Instance]) -> Iterable[Instance]:
        """The same instances, with those that are drained marked so."""
        if not self.drains:
            return instances
        return [self._marked(instance) for instance in instances]

    def _marked(self, instance: Instance) -> Instance:
        for one in self.drains:
            if one.drains(instance.fleet, instance.name):
                return _kept_from(instance, one)
        return instance


def _kept_from(instance: Instance, override: Override) -> Instance:
    """Mark an instance on which this override lets no new job start."""
    if override.kind is not OverrideKind.QUARANTINE:
        return replace(instance, drained=override.sentence)
    is_shown = instance.state in SHOWN_AS_QUARANTINED
    state = InstanceState.QUARANTINED if is_shown else instance.state
    return replace(instance, state=state, drained=override.reason_and_end)


def _of_kind(overrides: Iterable[Override], kind: OverrideKind) -> tuple[Override, ...]:
    return tuple(one for one in overrides if one.kind is kind)


def _waiting(override: Override) -> Waiting:
    return Waiting("override", override.sentence)
