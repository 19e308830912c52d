"""`fleetform show`: a plan of the history, or one that `plan --out` wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, format_option
from fleetform.cli.failure import Refused
from fleetform.cli.plan import Form, show_plan
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.history import HistoryEntry
    from fleetform.model.plan import Plan
    from fleetform.model.ports import Reader

_EXAMPLES = (
    ("fleetform show last", "Show the newest plan, and its result"),
    ("fleetform show 3f2a91", "Show the plan whose digest begins with 3f2a91"),
    ("fleetform show today.plan --format json", "Show a plan that `plan --out` saved, as JSON"),
)


@make_command("show", examples=_EXAMPLES)
@click.argument("plan", metavar="PLAN")
@directory_option
@format_option("text", "json", "markdown")
@click.option("--steps", is_flag=True, help="List the result of each step.")
def command(plan: str, path: str | None, form: Form, steps: bool) -> None:
    """
    Show a plan from the history or from a file.

    PLAN is the beginning of a digest in `fleetform history`, `last`, or a file. The plan is shown
    as it was made; nothing is compared again. For an applied plan, the end shows when it was
    applied, by whom, and with which result.
    """
    out = screen()
    if Path(plan).is_file():
        show_plan(out, _from_file(plan), form)
        return
    from fleetform.app.history import find_plan

    reader = open_reader(open_workspace(or_default(path)))
    digest, found = find_plan(reader, plan)
    show_plan(out, found, form)
    if form == "text":
        _show_applies(out, reader, digest, steps=steps)


def _from_file(file: str) -> Plan:
    from fleetform.plan.serialize import load

    try:
        return load(Path(file).read_bytes())
    except ValueError as error:
        raise Refused(
            f"{file} is not a plan: {error}", advice="write one with `fleetform plan --out`"
        ) from error


def _show_applies(out: Screen, reader: Reader, digest: str, *, steps: bool) -> None:
    entries = [one for one in reader.read_history(limit=10_000) if one.digest == digest]
    applies = [one for one in entries if one.kind == "apply"]
    out.line()
    if not applies:
        out.line(_made(entries), "dim")
        return
    from fleetform.views.history import (
        history_rows,
        history_table,
        operation_rows,
        operations_table,
    )
    from fleetform.views.lines import printable

    out.table(history_table(history_rows(applies)))
    for entry in applies:
        if steps:
            out.line()
            out.table(operations_table(operation_rows(reader.read_operations(entry.apply_uid))))
        else:
            for sentence in entry.summary.splitlines()[1:]:
                out.line(f"  {printable(sentence)}", "bad")


def _made(entries: list[HistoryEntry]) -> str:
    from fleetform.views.moments import moment

    if not entries:
        return "Never applied."
    return (
        f"Made {moment(entries[0].at_ms)} by {entries[0].who or 'an unknown user'}; never applied."
    )
