"""Commands of a run, and the variables and commands of Slurm that they may expect."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds.base import not_supported, one_or_many, read_by, refuse, text_of
from fleetform.spec.quantities.ranges import exact_text, shown, unfit
from fleetform.spec.secrecy import names_secret


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


# Environment variables: `[LR=0.1, HF_TOKEN]`, `{LR: 0.1}`.
#
# A name without a value, in a list, stands for the value in the environment of `apply`. It is None
# here, because taking it from there is not supported yet.

Values: TypeAlias = dict[str, str | None]

_NAME = "[A-Za-z_][A-Za-z0-9_]*"


def environment_variables(value: Any) -> Values:
    """`[K=V]` and `{K: V}`, as a mapping of text to text."""
    if isinstance(value, Mapping):
        pairs: list[tuple[str, str | None]] = [
            (str(key), _value(str(key), item)) for key, item in value.items()
        ]
    elif isinstance(value, list | tuple):
        pairs = [_assignment(item) for item in value]
    else:
        raise refuse("wrong-type", str(unfit(value, "a list, `- LR=0.1`, or a mapping")))
    variables: Values = {}
    for name, text in pairs:
        if not re.fullmatch(_NAME, name):
            raise refuse(
                "bad-variable",
                f"{shown(name)} cannot be the name of an environment variable.",
                "Use letters, digits and `_`, with no digit in front.",
            )
        if name in variables:
            raise refuse("said-twice", f"The variable `{name}` is set twice.")
        if text is not None and "\0" in text:
            raise refuse("bad-variable", f"The variable `{name}` contains a null character.")
        variables[name] = text
    return variables


def _value(name: str, item: Any) -> str:
    if item is None:
        raise refuse(
            "wrong-type",
            f"The variable `{name}` has no value.",
            f'Write `{name}: ""` for an empty one. In a list, `- {name}` takes it from the'
            " environment of `apply`.",
        )
    return text_of(item, f"The variable `{name}`")


def _assignment(item: Any) -> tuple[str, str | None]:
    if not isinstance(item, str):
        # Kubernetes has lists of these, and compose lists of mappings.
        advice = "Write `NAME=VALUE`, or the whole of `env` as a mapping, `NAME: VALUE`."
        raise refuse("wrong-type", str(unfit(item, "an assignment, such as `LR=0.1`")), advice)
    name, equals, text = item.partition("=")
    return (name, text) if equals else (name.strip(), None)


Variables = Annotated[
    Values,
    *read_by(
        environment_variables,
        {
            "anyOf": [
                {
                    "type": "array",
                    "items": {"type": "string", "pattern": rf"^{_NAME}=|^\s*{_NAME}\s*$"},
                },
                {
                    "type": "object",
                    "propertyNames": {"pattern": exact_text(_NAME)},
                    "additionalProperties": {"type": ["string", "number"]},
                },
            ]
        },
    ),
]


def without_value(variables: Values | None) -> Iterator[Problem]:
    """A note for each variable whose value is to come from the caller's environment."""
    for name, text in (variables or {}).items():
        if text is None:
            yield Problem(
                "not-supported",
                ("env",),
                f"`{name}` has no value, and taking values from the environment of `apply` is not supported"
                " yet.",
                f"Write `{name}=VALUE`. Until then, plans block it.",
                level=Level.NOTE,
                word=name,
            )


def warn_of_secret_parameters(names: Iterable[str]) -> Iterator[Problem]:
    """A warning for each parameter of a sweep whose name says that its values are secrets."""
    for name in names:
        if names_secret(name):
            yield Problem(
                "secret-in-clear",
                ("matrix", name),
                f"The values of `{name}` are in plaintext: everyone who can read the configuration, its history or the ledger can read them. Names of elements have `sealed-…` in their place.",
                "A secret is no parameter: give the sweep a name of each, such as an account, and let the"
                " commands read the secret by it from a file that only the job's account can read.",
                level=Level.WARNING,
                at_key=True,
            )


def warn_of_secrets(variables: Values | None) -> Iterator[Problem]:
    """
    A warning for each variable whose name says that it holds a secret, and that has one.

    Its value reaches the job all the same: what is in `env` is its author's to say.
    """
    for name, text in (variables or {}).items():
        if text and names_secret(name) and "${{" not in text:
            yield Problem(
                "secret-in-clear",
                ("env",),
                f"`{name}` is in plaintext: everyone who can read the configuration, its history or the ledger can read it.",
                "Let the commands read it from a file that only the job's account can read, and"
                " change it if it was committed.",
                level=Level.WARNING,
                at_key=True,
            )
