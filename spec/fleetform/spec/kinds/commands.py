"""Commands of a run, and the variables and commands of Slurm that they may expect."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Problem
from fleetform.spec.kinds.base import not_supported, one_or_many, refuse, text_of
from fleetform.spec.quantities.ranges import shown, unfit


def commands(value: Any) -> Any:
    """The commands as texts."""
    if not isinstance(value, str | list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a list of commands")))
    listed = one_or_many(value)
    if sum(isinstance(one, Mapping) for one in listed) > _WRONG_MAX:
        # Each would be an error of its own, and a list of so many mappings is another mistake.
        raise refuse("wrong-type", str(unfit(value, "a list of commands")))
    return listed


def command(value: Any) -> str:
    """One of them, at its own place in the list."""
    if isinstance(value, bool):
        # `- true` is the command of that name, and YAML's boolean by accident only.
        return str(value).lower()
    if isinstance(value, Mapping):
        raise refuse(
            "wrong-type",
            "YAML reads this command as a mapping, because it contains a colon and a space.",
            _quoting(value),
        )
    return text_of(value, "A command")


def _quoting(value: Mapping[str, Any]) -> str:
    """Say how to write a command that was read as a mapping of one entry."""
    if len(value) == 1:
        ((name, rest),) = value.items()
        if rest is None or isinstance(rest, str | int):
            text = f"{name}: {_as_written(rest)}".rstrip()
            if len(text) <= _SHOWN_MAX and "\n" not in text:
                quoted = text.replace("'", "''")
                return f"Quote the command: `- '{quoted}'`."
    return "Quote the command, or put it on a line of its own below `- |`."


def _as_written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


_WRONG_MAX = 100
"""Commands that are reported one by one where YAML reads them as mappings."""

_SHOWN_MAX = 120
"""Characters of a command that an advice repeats; a longer one is quoted by the finding's line."""


def without_nul(value: str) -> str:
    """Text that a process can be started with."""
    # execve(2) takes it for the end of an argument.
    if "\0" in value:
        raise refuse(
            "bad-value",
            "It contains a NUL character, which no argument of a process can have.",
            r"Leave it out. Where a file needs one, write `printf 'a\0b' > FILE` in single quotes.",
        )
    return value


Commands = Annotated[
    tuple[
        Annotated[str, Field(min_length=1), BeforeValidator(command), AfterValidator(without_nul)],
        ...,
    ],
    BeforeValidator(commands, json_schema_input_type=str | list[str | int | float | bool]),
]

# What `compat: slurm` means beside the other fields of a run: counts in `env:`, and `srun` on several nodes.
# A document has no fields for tasks. A script's `--ntasks`, `--ntasks-per-node` and `--cpus-per-task` are
# entries of `env:` under the names of Slurm's variables (ADR 35).
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
        yield not_supported(
            ("compat",),
            SRUN_ON_NODES,
            SRUN_ADVICE,
        )
