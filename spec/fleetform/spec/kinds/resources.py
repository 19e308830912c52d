"""What one node of a run needs of its host, and what a host has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

from fleetform.spec.field_facts import UNSUPPORTED, Facts, supported_by, unit
from fleetform.spec.kinds.amounts import (
    CapacityCpu,
    CapacityGpu,
    Cpus,
    DiskRange,
    Gpus,
    MemoryRange,
    Size,
)
from fleetform.spec.kinds.base import Model


class Resources(Model):
    """
    The resources that each node requires. `sharing` of the fleet decides about resources that are
    not set.
    """

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {
        "gpu.memory": (unit("bytes"),),
        "gpu.slice": (UNSUPPORTED,),
        "gpu.total_memory": (UNSUPPORTED, unit("bytes")),
        "gpu.compute_capability": (UNSUPPORTED,),
    }

    cpu: Cpus | None = None
    """
    Number of CPUs, or a range, and optionally their architecture. A fraction such as `0.5` is
    allowed. Example: `2..`, `0.5`, `4..8`, `x86:4`, `{arch: arm, count: 8..}`.
    """

    memory: MemoryRange | None = None
    """
    Memory, or a range. The job is limited to the memory that it receives. Example: `8GB..`, `16GB`.
    """

    disk: DiskRange | None = None
    """Free disk space, or a range. Example: `100GB..`, `{size: 100GB}`."""

    shm_size: Annotated[Size | None, supported_by("agents.host")] = None
    """
    Size of the shared memory at `/dev/shm`, which the data loaders of PyTorch use. Example: `16GB`.
    """

    gpu: Gpus | None = None
    """
    GPUs as `NAME:MEMORY:COUNT`, where each part is optional, or as a mapping. Of several names any
    one satisfies; `MEMORY` is of one GPU. A mapping also accepts `vendor`, `total_memory` (of all
    GPUs together), `compute_capability` (the least), and `slice` (a MIG slice). Example:
    `A100:80GB:1..8`, `24GB..`, `nvidia:2`, `{name: [A100, H100], count: 8}`, `{name: A100, slice:
    1g.10gb, count: 2}`, `{total_memory: 160GB.., compute_capability: 8.0}`.
    """


class Capacity(Model):
    """The resources of one host. Resources that are not set are detected."""

    other_facts: ClassVar[Mapping[str, tuple[Facts, ...]]] = {"gpu.memory": (unit("bytes"),)}

    cpu: CapacityCpu | None = None
    """
    Number of CPUs of a node. It may be larger than that of the machine. Default: detected. Example:
    `256`, `0.5`.
    """

    memory: Size | None = None
    """Memory of a node. Default: detected. Example: `256GB`."""

    disk: Size | None = None
    """Disk space of a node. Default: detected. Example: `1TB`."""

    gpu: CapacityGpu | None = None
    """
    GPUs of a node: name, memory of one GPU, and count. Default: detected. Example: `A100:80GB:8`.
    """
