"""
What a host has, where a document says so and nobody has to look.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from fleetform.spec.field_facts import Facts, unit
from fleetform.spec.kinds.amounts import CapacityCpu, CapacityGpu, Size
from fleetform.spec.kinds.base import Model


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
