"""
What a host has, where a document says so and nobody has to look.
"""

from __future__ import annotations

from fleetform.spec.kinds.amounts import CapacityCpu, CapacityGpu, Size
from fleetform.spec.kinds.base import Model


class Capacity(Model):
    """What one host has; what is left out is detected."""

    cpu: CapacityCpu | None = None
    """CPUs of a node. They may be more than the machine has. Example: `256`, `0.5`."""

    memory: Size | None = None
    """Memory of a node. Example: `256GB`."""

    disk: Size | None = None
    """Disk of a node. Example: `1TB`."""

    gpu: CapacityGpu | None = None
    """GPUs of a node: name, memory of one, and number. Example: `A100:80GB:8`."""
