"""
What is free on each instance while a round decides; mutable, and of one round only.

Within a round units are only ever taken, never given back. So what does not fit an instance
once does not fit it again, and that is what lets `candidates` forget it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fleetform.model.instance import Allocation, Gpu, Instance, InstanceState
from fleetform.schedule.demand import Shape, Take, gpu_kind, shape_of


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


@dataclass(slots=True)
class Space:
    """One instance in this round; `order` is its place among all, for ties."""

    order: int
    instance: Instance
    shape: Shape
    free: Free
    is_ready: bool
    held: list[Held] = field(default_factory=list)

    @property
    def tightness(self) -> tuple[int, int, int, int]:
        """
        Sort key of best fit: the least free comes first, and GPUs weigh most.

        What a run takes is the same on all instances of a shape, so that comparing what is
        free compares what would be left over. Runs without GPUs thus keep off hosts with free
        GPUs, and large holes stay for large runs.
        """
        free = self.free
        return (len(free.gpus), free.cpu_millicores, free.memory_bytes, self.order)

    def take(self, take: Take, gpus: tuple[str, ...], end_ms: int | None) -> None:
        held = Held(
            take.cpu_millicores, take.memory_bytes, take.disk_bytes, gpus, take.blocks, end_ms
        )
        self.free.remove(held)
        self.held.append(held)


@dataclass(slots=True)
class Fleet:
    """The instances of one fleet, in order of number."""

    name: str
    spaces: list[Space] = field(default_factory=list)


def capacity(instance: Instance) -> Free:
    """Return all that an instance has, as if nothing ran on it."""
    return Free(
        instance.cpu_millicores,
        instance.memory_bytes,
        instance.disk_bytes,
        sorted(instance.gpus, key=lambda gpu: (gpu.index, gpu.uuid)),
        max(instance.blocks, 1),
    )


def build_fleets(
    instances: Iterable[Instance],
    allocations: Sequence[Allocation],
    ends_at_ms: Mapping[str, int],
    now_ms: int,
) -> dict[str, Fleet]:
    """
    Lay out what is free, by fleet in order of name.

    Instances that are going away are left out: they take no job now and never again.
    """
    fleets: dict[str, Fleet] = {}
    by_uid: dict[str, Space] = {}
    shapes: dict[Shape, Shape] = {}
    gone = (InstanceState.TERMINATING, InstanceState.TERMINATED)
    lasting = [one for one in instances if one.state not in gone]
    for order, instance in enumerate(sorted(lasting, key=_place)):
        shape = shape_of(instance)
        space = Space(
            order,
            instance,
            shapes.setdefault(shape, shape),
            capacity(instance),
            instance.state is InstanceState.READY,
        )
        by_uid[instance.uid] = space
        fleets.setdefault(instance.fleet, Fleet(instance.fleet)).spaces.append(space)
    for allocation in allocations:
        holder = by_uid.get(allocation.instance_uid)
        if holder is not None:
            _hold(holder, allocation, ends_at_ms.get(allocation.run_uid), now_ms)
    return fleets


def _hold(space: Space, allocation: Allocation, end_ms: int | None, now_ms: int) -> None:
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
