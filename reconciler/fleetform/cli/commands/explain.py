"""`fleetform explain`: the documentation of kinds and fields, in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import json_option
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen
from fleetform.model.figures import first_of

if TYPE_CHECKING:
    from fleetform.spec.explain import Explanation, UnknownPath

_EXAMPLES = (
    ("fleetform explain", "List the types of documents"),
    ("fleetform explain task", "List the fields of a task"),
    ("fleetform explain task.resources.gpu", "Explain one field"),
    ("fleetform explain task.retry --recursive", "Show all fields below a field"),
)

# A refusal that lists a hundred fields is not read.
_NAMES_SHOWN_MAX = 12


def complete_path(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Complete a field's path, one dot at a time."""
    from fleetform.spec.explain import complete

    return complete(incomplete)


@make_command("explain", examples=_EXAMPLES)
@click.argument("field", required=False, shell_complete=complete_path)
@click.option("--recursive", is_flag=True, help="Show all fields below it, indented.")
@json_option
def command(field: str | None, recursive: bool, as_json: bool) -> None:
    """
    Explain FIELD: how it is written, what a change of it does, and which fields it has.

    FIELD is a type of document, followed by field names with dots. Without FIELD, the types are
    listed.
    """
    from fleetform.spec.explain import below, kinds
    from fleetform.views.explain import explanation_lines, kind_lines, part_lines

    out = screen()
    if field is None:
        listed = kinds()
        if as_json:
            out.json(listed)
            return
        lines = kind_lines(listed, width=out.width)
    elif not recursive:
        found = _found(field)
        if as_json:
            out.json(found)
            return
        lines = explanation_lines(found, width=out.width)
    else:
        rows = list(below(_found(field).path))
        if as_json:
            out.json([{"path": path, "part": part} for path, part in rows])
            return
        lines = part_lines(rows, width=out.width)
    out.lines(lines)


def _found(field: str) -> Explanation:
    from fleetform.spec.explain import UnknownPath, explain

    found = explain(field)
    if isinstance(found, UnknownPath):
        raise _refusal(found)
    return found


def _refusal(unknown: UnknownPath) -> Refused:
    """Say how far the path leads, and what was probably meant."""
    if not unknown.known:
        message = f"there is no type `{unknown.wrong}`"
    elif unknown.parts:
        message = f"`{unknown.known}` has no field `{unknown.wrong}`"
    else:
        message = f"`{unknown.known}` has no fields"
    if unknown.meant:
        return Refused(message, advice=f"did you mean `{unknown.meant}`?")
    listed = first_of([f"`{name}`" for name in unknown.parts], _NAMES_SHOWN_MAX)
    return Refused(message, advice=f"there is: {listed}" if listed else "")
