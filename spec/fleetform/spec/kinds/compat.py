"""
What `compat: slurm` means beside the other fields of a run: counts in `env:`, and `srun` on several nodes.

A document has no fields for tasks. A script's `--ntasks`, `--ntasks-per-node` and `--cpus-per-task` are
entries of `env:` under the names of Slurm's variables (ADR 35).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import not_carried_out
from fleetform.spec.quantities.ranges import shown

SLURM_COUNTS = ("SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_CPUS_PER_TASK")
"""Entries of `env:` that a job's other variables of Slurm follow from."""

SRUN_ON_NODES = (
    "`srun` on several nodes is not supported yet: it starts tasks on its own node only, and the commands"
    " run on each node."
)
SRUN_ADVICE = (
    "Start the program without `srun`: `SLURM_PROCID` and `SLURM_NODEID` are set on each node."
)

_COUNT_MAX = 65_536

# At the start of a command of the shell, or behind an assignment: not in a comment or a path.
_SRUN = re.compile(r"^[^#\n]*?(?<![\w./-])srun(?![\w./-])", re.MULTILINE)


def slurm_problems(env: Mapping[str, str | None]) -> Iterator[Problem]:
    """Counts that are none; an expression is only known for each element."""
    for name in SLURM_COUNTS:
        text = env.get(name)
        if text is None or "${{" in text:
            continue
        if not (text.isascii() and text.isdecimal() and 0 < int(text) <= _COUNT_MAX):
            yield Problem(
                "bad-value",
                ("env",),
                f"`{name}` is {shown(text)}: with `compat: slurm` it must be a whole number from 1.",
                f"Write `{name}: 4`, or leave it out.",
                word=name,
            )


def slurm_beyond(nodes: int | None, commands: Sequence[str]) -> Iterator[Problem]:
    """Slurm runs a script on its first node, and `srun` starts tasks on all of them."""
    if (nodes or 1) > 1 and any(_SRUN.search(command) for command in commands):
        yield not_carried_out(
            ("compat",),
            SRUN_ON_NODES,
            SRUN_ADVICE,
        )
