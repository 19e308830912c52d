"""
What one node of a run needs of its host.
"""

from __future__ import annotations

from fleetform.spec.kinds.amounts import Cpus, DiskRange, Gpus, MemoryRange, Size
from fleetform.spec.kinds.base import Model


class Resources(Model):
    """Requirements of each node. What is left out is decided by how the fleet shares hosts."""

    cpu: Cpus | None = None
    """
    CPUs, and of which architecture; a part of one is allowed.
    Example: `2..`, `0.5`, `4..8`, `x86:4`, `{arch: arm, count: 8..}`.
    """

    memory: MemoryRange | None = None
    """Memory, which then is also the limit. Example: `8GB..`, `16GB`."""

    disk: DiskRange | None = None
    """Free disk. Example: `100GB..`, `{size: 100GB}`."""

    shm_size: Size | None = None
    """Shared memory (`/dev/shm`), as data loaders of PyTorch use it. Example: `16GB`."""

    gpu: Gpus | None = None
    """
    GPUs: vendor, names any of which will do, memory of one, and how many; as a mapping also their
    memory together (`total_memory`), the least `compute_capability`, or slices of GPUs.
    Example: `A100:80GB:1..8`, `24GB..`, `nvidia:2`, `{name: [A100, H100], count: 8}`,
    `{name: A100, slice: 1g.10gb, count: 2}`, `{total_memory: 160GB.., compute_capability: 8.0}`.
    """
