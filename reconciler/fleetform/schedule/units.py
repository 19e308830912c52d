"""The units of one instance: what it has, what jobs hold of it, and what is free."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from fleetform.model.instance import Allocation, Gpu, Instance
from fleetform.schedule.demand import Take, gpu_kind

UNCOUNTED_BYTES = 1 << 62
"""What is free of a disk of which nobody knows the size: more than anything asks for."""


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
    """Return all that an instance has, as if nothing ran on it."""
    return Free(
        instance.cpu_millicores,
        instance.memory_bytes,
        instance.disk_bytes or UNCOUNTED_BYTES,
        sorted(instance.gpus, key=lambda gpu: (gpu.index, gpu.uuid)),
        max(instance.blocks, 1),
    )
