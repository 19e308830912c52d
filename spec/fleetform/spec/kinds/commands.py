"""
Shell commands: a list, or one alone.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from fleetform.spec.kinds.base import one_or_many, refuse, text_of
from fleetform.spec.quantities.ranges import unfit


def commands(value: Any) -> Any:
    """The commands as texts."""
    if not isinstance(value, str | list | tuple):
        raise refuse("wrong-type", str(unfit(value, "a list of commands")))
    # `- true` is the command of that name, and YAML's truth value by accident only.
    return [
        str(item).lower() if isinstance(item, bool) else text_of(item, "A command")
        for item in one_or_many(value)
    ]


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
    tuple[Annotated[str, Field(min_length=1), AfterValidator(without_nul)], ...],
    BeforeValidator(commands, json_schema_input_type=str | list[str | int | float | bool]),
]
