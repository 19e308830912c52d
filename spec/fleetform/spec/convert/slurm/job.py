"""
A job while its directives are read, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from fleetform.spec.convert.result import Notes
from fleetform.spec.dataclass import dataclass

__all__ = ["Job", "UnfitError", "size_text"]


@dataclass(slots=True)
class Job:
    """A job while its directives are read. Amounts are what was said; 0: nothing."""

    notes: Notes
    known: frozenset[str]
    """Names that a dependency may mean."""
    fields: dict[str, Any] = field(default_factory=dict)
    nodes: int = 0
    tasks: int = 0
    tasks_per_node: int = 0
    cpus_per_task: int = 0
    cpus_per_gpu: int = 0
    gpus: int = 0
    """On each node."""
    gpus_in_all: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    megabytes: Mapping[str, int] = field(default_factory=dict)
    """By what they are counted for: `node`, `cpu`, `gpu`."""
    amounts_line: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    """Where each field comes from."""


class UnfitError(ValueError):
    """The value cannot be read; its text is a clause for people."""


def size_text(megabytes: int) -> str:
    """Return a size as a document has it."""
    return f"{megabytes // 1024}GB" if megabytes % 1024 == 0 else f"{megabytes}MB"
