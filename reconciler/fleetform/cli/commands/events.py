"""`fleetform events`: what happened, in the order it happened."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import json_option, tree_option
from fleetform.cli.names import complete_runs, one_run
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace

if TYPE_CHECKING:
    from fleetform.cli.screen import Screen
    from fleetform.model.event import LoggedEvent

_EXAMPLES = (
    ("fleetform events", "Print the latest events of the environment"),
    ("fleetform events train -f", "Follow those of one run"),
    ("fleetform events --json --limit 1000", "Print them as JSON, one array"),
)

_POLL_SECONDS = 0.25


@make_command("events", examples=_EXAMPLES)
@click.argument("run", required=False, shell_complete=complete_runs)
@tree_option
@click.option("-f", "--follow", is_flag=True, help="Go on until Ctrl-C; JSON is then one a line.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="At most so many."
)
@json_option
def command(run: str | None, path: str | None, follow: bool, limit: int, as_json: bool) -> None:
    """Print what happened, of one RUN or of everything, the latest last."""
    reader = open_reader(open_workspace(path))
    if run is not None:
        one_run(reader, run)
    shown = reader.read_events(run=run)[-limit:]
    out = screen()
    if not follow:
        _show(out, shown, as_json=as_json, one_array=True)
        return
    after = 0
    while True:
        if shown:
            _show(out, shown, as_json=as_json, one_array=False)
            out.flush()
            after = shown[-1].number
        time.sleep(_POLL_SECONDS)
        shown = reader.read_events(run=run, after=after)
