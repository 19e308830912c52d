"""`fleetform ps`: the runs, one line each, or one line a sweep."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import json_option, tree_argument
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import open_reader, open_workspace
from fleetform.cli.words import NOT_DRIVEN
from fleetform.model.run import FINAL

_EXAMPLES = (
    ("fleetform ps", "List the runs of the tree around the current folder"),
    ("fleetform ps --state running --state failed", "List those in some states only"),
    ("fleetform ps --sweeps", "Fold sweeps and arrays into one line each"),
    ("fleetform ps --all --json", "List archived runs too, as JSON"),
)

_STATES = ("pending", "submitted", "provisioning", "preparing", "running", "finishing",
           "unknown", "done", "failed", "stopped", "unschedulable", "aborted")  # fmt: skip


@make_command("ps", examples=_EXAMPLES)
@tree_argument
@click.option("-a", "--all", "archived", is_flag=True, help="Archived runs too.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(_STATES), help="Only runs in this state."
)
@click.option("--sweeps", is_flag=True, help="One line a sweep or array, with counts.")
@json_option
def command(
    path: str | None, archived: bool, states: tuple[str, ...], sweeps: bool, as_json: bool
) -> None:
    """
    List the runs of the environment at PATH: where each stands, since when, and why.

    A run that waits shows its first reason; `fleetform why RUN` shows all of them.
    """
    from fleetform.api.waiting import waiting_reasons
    from fleetform.views.overrides import in_force_lines
    from fleetform.views.runs import groups_table, in_order, run_groups, run_rows, runs_table
    from fleetform.wiring.clock import SystemClock
    from fleetform.wiring.controllers import find_controller

    workspace = open_workspace(path)
    reader = open_reader(workspace)
    now_ms = SystemClock().now_ms()
    histories = in_order(
        history
        for history in reader.read_runs()
        if (archived or not history.archived) and (not states or history.run.state in states)
    )
    book = reader.read_book()
    rows = run_rows(
        histories,
        instances=book.instances,
        waiting=waiting_reasons(book, now_ms=now_ms),
        now_ms=now_ms,
    )
    out = screen()
    groups = run_groups(rows) if sweeps else ()
    if as_json:
        out.json(groups if sweeps else rows)
        return
    for sentence in in_force_lines(book.overrides, now_ms):
        error_screen().labelled("note", sentence)
    if not rows:
        out.line("no runs" if not states else "no runs in these states", "dim")
        return
    if groups:
        out.table(groups_table(groups))
        out.line()
    single = [row for row in rows if not sweeps or not row.parent]
    if single:
        out.table(runs_table(single, now_ms=now_ms))
    if any(row.state not in FINAL for row in rows) and find_controller(workspace) is None:
        out.flush()
        error_screen().labelled("help", NOT_DRIVEN)
