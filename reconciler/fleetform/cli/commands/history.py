"""`fleetform history`: what was planned and applied, by whom, from which commit."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option, limit_option
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace, or_default

_EXAMPLES = (
    ("fleetform history", "List the latest plans and applies, newest first"),
    ("fleetform history --applies --format json", "List the applies only, as JSON"),
    ("fleetform show last", "Show the newest plan"),
)


@make_command("history", examples=_EXAMPLES)
@directory_option
@click.option(
    "--applies", is_flag=True, help="List applies only, without plans that were not applied."
)
@limit_option(30)
@json_option
def command(path: str | None, applies: bool, limit: int, as_json: bool) -> None:
    """
    List plans and applies: when, by whom, from which commit, and with which outcome.

    Applies are kept for ever. Plans that were never applied are kept for ninety days. The same plan
    made again is the same line.
    """
    from fleetform.views.history import history_rows, history_table

    reader = open_reader(open_workspace(or_default(path)))
    rows = history_rows(reader.read_history(limit=limit, applies_only=applies))
    none = "nothing has been planned or applied yet"
    screen().rows(rows, history_table, none=none, as_json=as_json)
