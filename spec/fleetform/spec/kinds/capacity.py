"""
What a host has, where a document says so and nobody has to look.
"""

from __future__ import annotations

from fleetform.spec.kinds.amounts import CapacityCpu, CapacityGpu, Size
from fleetform.spec.kinds.base import Model


class Capacity(Model):
    """The resources of one host. Resources that are not set are detected."""

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
