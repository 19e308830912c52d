"""The units of one instance: what it has, what jobs hold of it, and what is free."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.model.instance import Allocation, Gpu, Instance, InstanceState
from fleetform.model.run import Run
from fleetform.schedule.demand import Shape, Take, gpu_kind, shape_of

UNCOUNTED_BYTES = 1 << 62
"""What is free of a disk of unknown size: more than anything asks for."""


@dataclass(slots=True)
class Held:
    """What one job holds of an instance; `end_ms` is when it gives it back at the latest."""

    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int
    gpus: tuple[str, ...]
    blocks: int
    end_ms: int | None


@dataclass(slots=True)
class Free:
    """Units that are free, or may be lent. GPUs in the host's order."""

    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int
    gpus: list[Gpu]
    blocks: int

    def choose(self, take: Take) -> tuple[str, ...] | None:
        """Return the GPUs that `take` would get here, or None where it does not fit."""
        if (
            take.cpu_millicores > self.cpu_millicores
            or take.memory_bytes > self.memory_bytes
            or take.disk_bytes > self.disk_bytes
            or take.blocks > self.blocks
            or take.gpu_count > len(self.gpus)
        ):
            return None
        if not take.gpu_count:
            return ()
        kinds = take.gpu_kinds
        fitting = [gpu.uuid for gpu in self.gpus if kinds is None or gpu_kind(gpu) in kinds]
        if len(fitting) < take.gpu_count:
            return None
        return tuple(fitting[: take.gpu_count])

    def remove(self, held: Held | Allocation) -> None:
        self.cpu_millicores -= held.cpu_millicores
        self.memory_bytes -= held.memory_bytes
        self.disk_bytes -= held.disk_bytes
        self.blocks -= held.blocks
        if held.gpus:
            self.drop_gpus(held.gpus)

    def drop_gpus(self, uuids: Container[str]) -> None:
        self.gpus = [gpu for gpu in self.gpus if gpu.uuid not in uuids]

    def copy(self) -> Free:
        return Free(
            self.cpu_millicores, self.memory_bytes, self.disk_bytes, list(self.gpus), self.blocks
        )


def capacity(instance: Instance) -> Free:
    """
    Return all that an instance has, as if no job ran on it.

    GPUs that a process outside fleetform uses are left out: no job's end makes them free.
    """
    return Free(
        instance.cpu_millicores,
        instance.memory_bytes,
        instance.disk_bytes or UNCOUNTED_BYTES,
        sorted(usable_gpus(instance), key=lambda gpu: (gpu.index, gpu.uuid)),
        max(instance.blocks, 1),
    )


def usable_gpus(instance: Instance) -> Iterator[Gpu]:
    """Yield the GPUs that no process outside fleetform uses."""
    return (gpu for gpu in instance.gpus if gpu.used_by is None)


# What is free on each instance while a round decides; mutable, and of one round only.
# Within a round units are only ever taken, never given back. So what has no room once has none
# for the rest of the round, and that is what lets `equivalence_class` skip runs that ask for the same.

Tightness = tuple[int, int, int, int]
"""
Sort key of best fit: free GPUs, CPU, memory, and the instance's order. The least free comes
first, and GPUs weigh most.

What a run takes is the same on all instances of a shape, so that comparing what is free compares
what would be left over. Runs without GPUs thus keep off hosts with free GPUs, and large holes
stay for large runs.
"""


@dataclass(slots=True)
class Space:
    """
    One instance in this round.

    `order` is its place among all, for ties. `hold` says for whom it is kept free, if it is.
    """

    order: int
    instance: Instance
    rack: Rack
    free: Free
    is_ready: bool
    held: list[Held] = field(default_factory=list)
    hold: Hold | None = None

    @property
    def tightness(self) -> Tightness:
        free = self.free
        return (len(free.gpus), free.cpu_millicores, free.memory_bytes, self.order)


@dataclass(slots=True)
class Rack:
    """
    Instances of one fleet that are alike when empty: what fits one fits all of them, and whose jobs
    may start on one may start on all.

    `ceiling` has the most of each unit that is free on any of its ready instances. It may be
    out of date, and is then too high, because units are only taken: what exceeds it has no
    room, what does not is looked for.
    """

    number: int
    shape: Shape
    lacking: frozenset[str] = frozenset()
    """Volumes of the fleet that its instances do not have."""
    spaces: list[Space] = field(default_factory=list)
    ready: int = 0
    ceiling: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    is_dirty: bool = True

    def may_have_room(self, take: Take) -> bool:
        cpu, memory, disk, gpus, blocks = self.ceiling
        return (
            take.cpu_millicores <= cpu
            and take.memory_bytes <= memory
            and take.disk_bytes <= disk
            and take.gpu_count <= gpus
            and take.blocks <= blocks
        )

    def measure(self) -> None:
        """Bring the ceiling up to date."""
        if not self.is_dirty:
            return
        frees = [space.free for space in self.spaces if space.is_ready]
        if frees:
            self.ceiling = (
                max(free.cpu_millicores for free in frees),
                max(free.memory_bytes for free in frees),
                max(free.disk_bytes for free in frees),
                max(len(free.gpus) for free in frees),
                max(free.blocks for free in frees),
            )
        self.is_dirty = False


@dataclass(slots=True)
class Fleet:
    """
    The instances of one fleet, in order of number.

    `shelf` has the ready ones that are not held, best fit first; `take` and `keep` are all that
    may change what is free, because they keep it in order.
    """

    name: str
    spaces: list[Space] = field(default_factory=list)
    racks: list[Rack] = field(default_factory=list)
    held: list[Space] = field(default_factory=list)
    shelf: list[Tightness] = field(default_factory=list)
    by_order: dict[int, Space] = field(default_factory=dict)

    def fill_shelf(self) -> None:
        self.by_order = {space.order: space for space in self.spaces}
        self.shelf = sorted(space.tightness for space in self.spaces if space.is_ready)
        for rack in self.racks:
            rack.measure()

    def fitting(
        self, takes: Mapping[int, Take], least: tuple[int, int]
    ) -> Iterator[tuple[Space, Take, tuple[str, ...]]]:
        """
        Yield the instances on the shelf that have room, best fit first, with the GPUs to give.

        `takes` says what is taken, by the number of the rack; `least` has the fewest GPUs and
        the least CPU among them, where the search may begin.
        """
        shelf, by_order = self.shelf, self.by_order
        cpu = least[1]
        place = bisect_left(shelf, least)
        while place < len(shelf):
            gpus, has_cpu, _, order = shelf[place]
            if has_cpu < cpu:
                # Past those with fewer CPUs, within the same number of free GPUs.
                place = bisect_left(shelf, (gpus, cpu), place)
                continue
            space = by_order[order]
            take = takes.get(space.rack.number)
            if take is not None:
                chosen = space.free.choose(take)
                if chosen is not None:
                    yield space, take, chosen
            place += 1

    def take(self, space: Space, take: Take, gpus: tuple[str, ...], end_ms: int | None) -> Held:
        """Allot units; iterators of `fitting` are void afterwards."""
        before = space.tightness
        held = Held(
            take.cpu_millicores, take.memory_bytes, take.disk_bytes, gpus, take.blocks, end_ms
        )
        space.free.remove(held)
        space.held.append(held)
        space.rack.is_dirty = True
        if space.hold is None:
            self._unshelve(before)
            insort(self.shelf, space.tightness)
        return held

    def keep(self, space: Space, hold: Hold) -> None:
        """Take a ready instance off the shelf: only what `hold` lends is taken from it now."""
        assert space.hold is None, space.instance.name
        self._unshelve(space.tightness)
        space.hold = hold
        self.held.append(space)

    def _unshelve(self, key: Tightness) -> None:
        place = bisect_left(self.shelf, key)
        assert self.shelf[place] == key, key
        del self.shelf[place]


_ANYWHERE: Mapping[str, frozenset[str]] = {}


def build_fleets(
    instances: Iterable[Instance],
    allocations: Sequence[Allocation],
    ends_at_ms: Mapping[str, int],
    now_ms: int,
    volume_hosts: Mapping[str, frozenset[str]] = _ANYWHERE,
) -> dict[str, Fleet]:
    """
    Lay out what is free, by fleet in order of name.

    `volume_hosts` names the hosts of each volume that not all hosts may have. Instances that are going away are left out: they take no job now and never again.
    """
    fleets: dict[str, Fleet] = {}
    by_uid: dict[str, Space] = {}
    racks: dict[tuple[str, Shape, object], Rack] = {}
    gone = (InstanceState.TERMINATING, InstanceState.TERMINATED)
    lasting = [one for one in instances if one.state not in gone]
    for order, instance in enumerate(sorted(lasting, key=_place)):
        fleet = fleets.setdefault(instance.fleet, Fleet(instance.fleet))
        shape = shape_of(instance)
        # What decides whose jobs may start there: hosts of a cluster mostly have the same accounts.
        accounts = (instance.provider, instance.run_as, instance.agent_account, instance.accounts)
        lacking = frozenset(
            [name for name, hosts in volume_hosts.items() if instance.name not in hosts]
        )
        kind = (accounts, lacking)
        rack = racks.get((fleet.name, shape, kind))
        if rack is None:
            rack = racks[fleet.name, shape, kind] = Rack(len(racks), shape, lacking)
            fleet.racks.append(rack)
        is_ready = instance.state is InstanceState.READY and not instance.drained
        space = Space(order, instance, rack, capacity(instance), is_ready)
        rack.spaces.append(space)
        rack.ready += is_ready
        fleet.spaces.append(space)
        by_uid[instance.uid] = space
    for allocation in allocations:
        holder = by_uid.get(allocation.instance_uid)
        if holder is not None:
            _allot(holder, allocation, ends_at_ms.get(allocation.run_uid), now_ms)
    for fleet in fleets.values():
        fleet.fill_shelf()
    return fleets


def _allot(space: Space, allocation: Allocation, end_ms: int | None, now_ms: int) -> None:
    space.free.remove(allocation)
    space.held.append(
        Held(
            allocation.cpu_millicores,
            allocation.memory_bytes,
            allocation.disk_bytes,
            allocation.gpus,
            allocation.blocks,
            # One that is overdue is about to end: the host enforces it.
            None if end_ms is None else max(end_ms, now_ms),
        )
    )


def _place(instance: Instance) -> tuple[str, int, str]:
    return (instance.fleet, instance.number, instance.uid)


# One run's hold on instances, and what of them it lends to runs behind it.
# `holds` chooses the instances and gives the rule; here is only what a hold knows by itself.


@dataclass(slots=True)
class Loan:
    """GPUs on a held instance for a run from behind; `spare` is what it uses up, if anything."""

    gpus: tuple[str, ...]
    spare: Free | None


@dataclass(slots=True)
class Hold:
    """
    One run's claim on instances.

    `at_ms` is when it can start at the latest, None when that is not known. `spares` are the
    units beyond its need at that moment, by the order of the instance.
    """

    run: Run
    at_ms: int | None
    spares: dict[int, Free] = field(default_factory=dict)

    def lend(self, order: int, free: Free, take: Take, end_ms: int | None) -> Loan | None:
        """
        Say whether a run that ends by `end_ms` may have `take` of a held instance.

        `order` is the instance's place among all, `free` what it has free now.
        """
        if self.at_ms is not None and end_ms is not None and end_ms <= self.at_ms:
            gpus = free.choose(take)
            return None if gpus is None else Loan(gpus, None)
        spare = self.spares.get(order)
        if spare is None:
            return None
        gpus = _both(spare, free).choose(take)
        return None if gpus is None else Loan(gpus, spare)


def _both(one: Free, other: Free) -> Free:
    return Free(
        min(one.cpu_millicores, other.cpu_millicores),
        min(one.memory_bytes, other.memory_bytes),
        min(one.disk_bytes, other.disk_bytes),
        [gpu for gpu in one.gpus if gpu in other.gpus],
        min(one.blocks, other.blocks),
    )
