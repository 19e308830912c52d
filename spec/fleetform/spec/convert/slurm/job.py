"""
A job while its directives are read, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fleetform.spec.convert.result import Notes

__all__ = ["NO_PARTITIONS", "Job", "Partitions", "UnfitError", "size_text"]


class Partitions(NamedTuple):
    """
    What partitions are in the environment that the task goes to.

    Attributes:
        queues: Names of its queues.
        fleets: Names of its fleets.
        renamed: What people say that a partition is called there: a queue or a fleet.
        option: The option of the command that chooses a fleet for the partition `{name}`.
    """

    queues: frozenset[str] = frozenset()
    fleets: frozenset[str] = frozenset()
    renamed: Mapping[str, str] = {}
    option: str = "--partition {name}=FLEET"


NO_PARTITIONS = Partitions()


@dataclass(slots=True)
class Job:
    """A job while its directives are read. Amounts are what was said; 0: nothing."""

    notes: Notes
    known: frozenset[str]
    """Names that a dependency may mean."""
    partitions: Partitions = NO_PARTITIONS
    fields: dict[str, Any] = field(default_factory=dict)
    variable_advice: str = "Add `{name}: VALUE` to `env:`."
    """How a person sets the variable `{name}`."""
    env: dict[str, str] = field(default_factory=dict)
    nodes: int = 0
    tasks: int = 0
    tasks_per_node: int = 0
    tasks_per_gpu: int = 0
    cpus_per_task: int = 0
    cpus_per_gpu: int = 0
    cpus_least: int = 0
    """On each node."""
    gpus: int = 0
    """On each node."""
    gpus_in_all: int = 0
    gpus_per_task: int = 0
    gpu_type: str = ""
    constraint: str = ""
    """Features of a node that the script asks for, such as `a100`."""
    megabytes: Mapping[str, int] = field(default_factory=dict)
    """By what they are counted for: `node`, `cpu`, `gpu`."""
    folder: str = ""
    """Where the commands begin (`--chdir`), below the folder that the script is submitted in."""
    input_file: str = ""
    command: str = ""
    """What runs instead of the script's own lines (`--wrap`)."""
    output_files: list[str] = field(default_factory=list)
    """What `--output` and `--error` name."""
    amounts_line: int = 1
    constraint_line: int = 1
    lines: dict[str, int] = field(default_factory=dict)
    """Where each field comes from."""


class UnfitError(ValueError):
    """The value cannot be read; its text is a clause for people."""


def size_text(megabytes: int) -> str:
    """Return a size as a document has it."""
    return f"{megabytes // 1024}GB" if megabytes % 1024 == 0 else f"{megabytes}MB"
