"""
What one job takes of one instance, or what that instance lacks even when it is empty.

How much is allotted depends on how the fleet shares its instances:

    exact    the minimum of each range. CPU unset: one. Memory unset: the share of the host's
             memory that goes with the CPUs, not enforced as a limit; memory set: a hard limit.
             Disk unset: none counted. No `gpu`: no GPU.
    blocks   the fewest equal blocks that satisfy; a block is a share of CPUs, memory and GPUs.
    whole    everything. What is not set is asked for as dstack does: 2 CPUs, 8GB, 100GB disk.

On `whole` and `blocks` a run gets what there is, so upper bounds exclude instances; on `exact`
they have no effect, because the minimum is always within them.
"""

from __future__ import annotations

from dataclasses import dataclass

from fleetform.model.instance import Gpu, Instance
from fleetform.model.run import GpuRequirement, Requirement
from fleetform.spec.quantities.gpu import model_words

GB = 1 << 30

EXACT_CPU_MILLICORES = 1000
WHOLE_CPU_MILLICORES = 2000
WHOLE_MEMORY_BYTES = 8 * GB
WHOLE_DISK_BYTES = 100 * GB


@dataclass(frozen=True, slots=True)
class Shape:
    """
    All of an instance that decides what fits on it when it is empty.

    Instances of one shape are measured once. `unknown` names what neither the fleet declares
    nor an agent has reported yet: it is not held against the instance.
    """

    sharing: str
    blocks: int
    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int
    gpus: tuple[tuple[str, str, int], ...]
    """(vendor, name, memory) of each, in the host's order."""
    unknown: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Take:
    """
    What is allotted on an instance of one shape.

    `gpu_kinds` are the (vendor, name, memory) to choose from; None: any.
    """

    cpu_millicores: int
    memory_bytes: int
    memory_limited: bool
    disk_bytes: int
    gpu_count: int = 0
    gpu_kinds: frozenset[tuple[str, str, int]] | None = None
    blocks: int = 0


@dataclass(frozen=True, slots=True)
class Lack:
    """
    One thing an instance has too little of, or (`excess`) more of than the run accepts.

    resource: `cpu`, `memory`, `disk`, `gpu`. Amounts in its unit.
    """

    resource: str
    need: int
    have: int
    excess: bool = False


Demand = Take | tuple[Lack, ...]
"""What is taken, or all that is lacking; the second is never empty."""


def shape_of(instance: Instance) -> Shape:
    return Shape(
        sharing=instance.sharing,
        blocks=max(instance.blocks, 1),
        cpu_millicores=instance.cpu_millicores,
        memory_bytes=instance.memory_bytes,
        disk_bytes=instance.disk_bytes,
        gpus=tuple(gpu_kind(gpu) for gpu in instance.gpus),
        unknown=_unknown(instance),
    )


def gpu_kind(gpu: Gpu) -> tuple[str, str, int]:
    return (gpu.vendor, gpu.name, gpu.memory_bytes)


def measure(requirement: Requirement, shape: Shape) -> Demand:
    """Say what a job with this requirement takes of an empty instance of this shape."""
    if shape.sharing == "whole":
        return _measure_whole(requirement, shape)
    if shape.sharing == "blocks":
        return _measure_blocks(requirement, shape)
    return _measure_exact(requirement, shape)


def cpu_needed(requirement: Requirement, sharing: str) -> int:
    """Say how many millicores are asked for where the document may not say."""
    if requirement.cpu_min_millicores is not None:
        return requirement.cpu_min_millicores
    default = {"whole": WHOLE_CPU_MILLICORES, "exact": EXACT_CPU_MILLICORES}.get(sharing, 0)
    largest = requirement.cpu_max_millicores
    return default if largest is None else min(default, largest)


def memory_needed(requirement: Requirement) -> int:
    """Say how many bytes of memory are asked for of a whole host where the document may not say."""
    if requirement.memory_min_bytes is not None:
        return requirement.memory_min_bytes
    largest = requirement.memory_max_bytes
    return WHOLE_MEMORY_BYTES if largest is None else min(WHOLE_MEMORY_BYTES, largest)


def _measure_exact(requirement: Requirement, shape: Shape) -> Demand:
    cpu = cpu_needed(requirement, "exact")
    disk = requirement.disk_min_bytes or 0
    memory, limited = _memory_exact(requirement, shape, cpu)
    kinds, available = _gpu_choice(requirement.gpu, shape)
    gpu_count = requirement.gpu.count_min if requirement.gpu else 0
    lacks = _lacks(shape, cpu=cpu, memory=memory, disk=disk)
    if gpu_count > available and "gpu" not in shape.unknown:
        lacks.append(Lack("gpu", gpu_count, available))
    if lacks:
        return tuple(lacks)
    return Take(cpu, memory, limited, disk, gpu_count, kinds)


def _memory_exact(requirement: Requirement, shape: Shape, cpu: int) -> tuple[int, bool]:
    if requirement.memory_min_bytes is not None:
        return requirement.memory_min_bytes, True
    # Rounded down, so that as many jobs fit by memory as by CPU.
    share = shape.memory_bytes * cpu // shape.cpu_millicores if shape.cpu_millicores else 0
    share = min(share, shape.memory_bytes)
    largest = requirement.memory_max_bytes
    return (share, False) if largest is None else (min(share, largest), False)


def _measure_whole(requirement: Requirement, shape: Shape) -> Demand:
    cpu = cpu_needed(requirement, "whole")
    memory = memory_needed(requirement)
    disk = WHOLE_DISK_BYTES if requirement.disk_min_bytes is None else requirement.disk_min_bytes
    lacks = _lacks(shape, cpu=cpu, memory=memory, disk=disk)
    lacks.extend(_excesses(requirement, shape.cpu_millicores, shape.memory_bytes))
    _, available = _gpu_choice(requirement.gpu, shape)
    if requirement.gpu is not None and "gpu" not in shape.unknown:
        lacks.extend(_gpu_lacks(requirement.gpu, available, available))
    if lacks:
        return tuple(lacks)
    return Take(shape.cpu_millicores, shape.memory_bytes, False, shape.disk_bytes, len(shape.gpus))


def _measure_blocks(requirement: Requirement, shape: Shape) -> Demand:
    cpu_share = shape.cpu_millicores // shape.blocks
    memory_share = shape.memory_bytes // shape.blocks
    gpu_share = len(shape.gpus) // shape.blocks
    cpu = cpu_needed(requirement, "blocks")
    memory = requirement.memory_min_bytes or 0
    disk = requirement.disk_min_bytes or 0
    kinds, available = _gpu_choice(requirement.gpu, shape)
    gpu_count = requirement.gpu.count_min if requirement.gpu else 0
    lacks = _lacks(shape, cpu=cpu, memory=memory, disk=disk)
    if gpu_count > available and "gpu" not in shape.unknown:
        lacks.append(Lack("gpu", gpu_count, available))
    if lacks:
        return tuple(lacks)
    blocks = max(
        1,
        _parts(cpu, cpu_share),
        _parts(memory, memory_share),
        _parts(gpu_count, gpu_share),
    )
    if blocks > shape.blocks:
        # The remainder of a division belongs to no block.
        return _remainder_lacks(shape, cpu, memory, gpu_count)
    gpus = blocks * gpu_share
    if requirement.gpu is not None:
        lacks.extend(_gpu_lacks(requirement.gpu, gpus, available))
    lacks.extend(_excesses(requirement, blocks * cpu_share, blocks * memory_share))
    if lacks:
        return tuple(lacks)
    return Take(blocks * cpu_share, blocks * memory_share, True, disk, gpus, kinds, blocks)


def _remainder_lacks(shape: Shape, cpu: int, memory: int, gpu_count: int) -> tuple[Lack, ...]:
    usable = (
        ("cpu", cpu, shape.cpu_millicores // shape.blocks * shape.blocks),
        ("memory", memory, shape.memory_bytes // shape.blocks * shape.blocks),
        ("gpu", gpu_count, len(shape.gpus) // shape.blocks * shape.blocks),
    )
    return tuple(Lack(name, need, have) for name, need, have in usable if need > have)


def _lacks(shape: Shape, *, cpu: int, memory: int, disk: int) -> list[Lack]:
    amounts = (
        ("cpu", cpu, shape.cpu_millicores),
        ("memory", memory, shape.memory_bytes),
        ("disk", disk, shape.disk_bytes),
    )
    return [
        Lack(name, need, have)
        for name, need, have in amounts
        if need > have and name not in shape.unknown
    ]


def _excesses(requirement: Requirement, cpu: int, memory: int) -> list[Lack]:
    amounts = (
        ("cpu", requirement.cpu_max_millicores, cpu),
        ("memory", requirement.memory_max_bytes, memory),
    )
    return [
        Lack(name, largest, have, excess=True)
        for name, largest, have in amounts
        if largest is not None and have > largest
    ]


def _gpu_lacks(requirement: GpuRequirement, got: int, available: int) -> list[Lack]:
    if got < requirement.count_min or got > available:
        return [Lack("gpu", max(requirement.count_min, got), available)]
    if requirement.count_max is not None and got > requirement.count_max:
        return [Lack("gpu", requirement.count_max, got, excess=True)]
    return []


def _gpu_choice(
    requirement: GpuRequirement | None, shape: Shape
) -> tuple[frozenset[tuple[str, str, int]] | None, int]:
    """Return the kinds to choose from (None: any) and how many GPUs of them there are."""
    if requirement is None:
        return None, len(shape.gpus)
    kinds = frozenset(
        kind
        for kind in set(shape.gpus)
        if gpu_matches(requirement, Gpu("", kind[1], kind[2], vendor=kind[0]))
    )
    return kinds, sum(1 for kind in shape.gpus if kind in kinds)


def _parts(amount: int, share: int) -> int:
    """Return how many shares make up `amount`; more than any host has when a share is nothing."""
    if amount == 0:
        return 0
    return -(-amount // share) if share else 1 << 30


def _unknown(instance: Instance) -> frozenset[str]:
    """
    Name what is not known of an instance's capacity.

    An agent that was reached once has reported everything; before that, a zero means nothing
    unless the fleet declares it. No host is without a disk: a zero there always means that nobody
    has measured it, and then it is not counted, here or in the ledger.
    """
    disk = frozenset() if instance.disk_bytes else frozenset({"disk"})
    if instance.boot_id:
        return disk
    amounts = (
        ("cpu", instance.cpu_millicores),
        ("memory", instance.memory_bytes),
        ("gpu", len(instance.gpus)),
    )
    return disk | frozenset(
        name for name, amount in amounts if not amount and name not in instance.declared
    )


# Which GPUs satisfy what a run asks for.
# People write the short names of the trade (`A100`, `RTX4090`), drivers report long ones
# (`NVIDIA A100-SXM4-80GB`, `NVIDIA GeForce RTX 4090`), and a card sold as 24 GB reports less.

_NOMINAL_PERCENT = 92
"""
A card counts as having its nominal memory when it reports at least this share: ECC and firmware
keep some. T4: 15360 of 16384 MiB (93.7 %), L4: 23034 of 24576 (93.7 %), V100: 98.6 %. The next
smaller card on sale has 83 % at most (20 and 24 GB), so no two are taken for one another.
"""


def gpu_matches(requirement: GpuRequirement, gpu: Gpu) -> bool:
    """Tell whether `gpu` is one of those that `requirement` allows, whatever is free."""
    if requirement.vendor and requirement.vendor.lower() != gpu.vendor.lower():
        return False
    if requirement.names and not any(_is_called(gpu.name, name) for name in requirement.names):
        return False
    smallest, largest = requirement.memory_min_bytes, requirement.memory_max_bytes
    if smallest is not None and gpu.memory_bytes * 100 < smallest * _NOMINAL_PERCENT:
        return False
    return largest is None or gpu.memory_bytes <= largest


def _is_called(reported: str, asked: str) -> bool:
    """Tell whether `asked` is the model, with any number of the words that follow it."""
    wanted = "".join(model_words(asked))
    if not wanted:
        return False
    built = ""
    for word in model_words(reported):
        built += word
        if built == wanted:
            return True
    return False
