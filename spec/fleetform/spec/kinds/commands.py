"""
Shell commands: a list, or one alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.kinds.base import one_or_many, refuse, text_of
from fleetform.spec.quantities.ranges import unfit


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
