"""`fleetform events`: what happened, in the order it happened."""

from __future__ import annotations

import collections
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option, limit_option
from fleetform.cli.screen import Screen, screen
from fleetform.cli.selection import complete_runs, require_run
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from fleetform.model.history import LoggedEvent
    from fleetform.model.ports import Reader

_EXAMPLES = (
    ("fleetform events", "Print the latest events of the environment"),
    ("fleetform events train -f", "Follow the events of one run"),
    ("fleetform events --format json --limit 1000", "Print events as one JSON array"),
)

_POLL_SECONDS = 0.25
# One read of the ledger; a history of a million events is not held in memory.
_PIECE = 10_000


@make_command("events", examples=_EXAMPLES)
@click.argument("run", required=False, shell_complete=complete_runs)
@directory_option
@click.option(
    "-f",
    "--follow",
    is_flag=True,
    help="Follow new events until Ctrl-C; with JSON, print one event a line.",
)
@limit_option(100)
@json_option
def command(run: str | None, path: str | None, follow: bool, limit: int, as_json: bool) -> None:
    """Print the events of one RUN or sweep, or of the environment, newest last."""
    from fleetform.views.history import event_rows, events_table

    reader = open_reader(open_workspace(or_default(path)))
    if run is not None:
        require_run(reader, run)
    shown, after = _latest(reader, run, limit)
    out = screen()
    if not follow:
        rows = event_rows(shown)
        if as_json:
            out.json(rows)
        else:
            out.table(events_table(rows))
        return
    while True:
        _append(out, shown, as_json=as_json)
        time.sleep(_POLL_SECONDS)
        shown = reader.read_events(run=run, after=after, limit=_PIECE)
        after = shown[-1].number if shown else after


def _latest(reader: Reader, run: str | None, limit: int) -> tuple[Sequence[LoggedEvent], int]:
    """Read to the end and keep the last; returns them and the number of the last."""
    kept: collections.deque[LoggedEvent] = collections.deque(maxlen=limit)
    after = 0
    while piece := reader.read_events(run=run, after=after, limit=_PIECE):
        kept.extend(piece)
        after = piece[-1].number
    return tuple(kept), after


def _append(out: Screen, events: Sequence[LoggedEvent], *, as_json: bool) -> None:
    """Write events below earlier ones, so without titles and columns."""
    from fleetform.views.history import event_rows
    from fleetform.views.lines import printable

    for row in event_rows(events):
        if as_json:
            out.json_line(row)
        else:
            out.line(
                f"{out.toned(row.at, 'dim')}  {row.kind}  {row.resource}  {printable(row.message)}"
            )
    out.flush()
