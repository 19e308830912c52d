"""`fleetform ps`: the runs, one line each; an array or sweep is one line with counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, folder_first, json_option
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import complete_runs
from fleetform.cli.tree import not_driven, open_reader, open_workspace, or_default
from fleetform.model.run_state import FINAL, RunState
from fleetform.spec.names import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

_EXAMPLES = (
    ("fleetform ps", "List the runs; an array or sweep is one line"),
    ("fleetform ps --state running,failed", "List each run and element in these states"),
    ("fleetform ps sweep", "List each element of a sweep"),
    ("fleetform ps 'train*' 'arr[3-7]'", "List runs by pattern, and elements by index"),
    ("fleetform ps sweep --watch", "Redraw the list while the runs change; q ends it"),
    ("fleetform ps --all --format json", "List archived runs too, as JSON: each element is a row"),
)


def _read_states(
    _context: click.Context, _parameter: click.Parameter, typed: tuple[str, ...]
) -> frozenset[str]:
    """Read `running,failed`; the option may also be repeated."""
    wanted = [one.strip() for text in typed for one in text.split(",")]
    known = [state.value for state in RunState]
    for one in wanted:
        if one not in known:
            near = nearest(one, known)
            advice = f"did you mean `{near}`?" if near else f"the states are {', '.join(known)}"
            raise Refused(f"there is no state `{one}`", advice=advice)
    return frozenset(wanted)


@make_command("ps", examples=_EXAMPLES)
@click.argument(
    "runs", nargs=-1, metavar="[RUN]...", shell_complete=complete_runs, callback=folder_first
)
@directory_option
@click.option("-a", "--all", "archived", is_flag=True, help="List archived runs too.")
@click.option(
    "--state",
    "states",
    multiple=True,
    metavar="STATE[,STATE]...",
    callback=_read_states,
    help="List only runs and elements in these states, one line each.",
)
@click.option("--all-elements", is_flag=True, help="Print one line for each element.")
@click.option(
    "-w",
    "--watch",
    is_flag=True,
    help="Redraw the list until q or Ctrl-C; in a pipe or with JSON, print one line for each change"
    " of a state.",
)
@json_option
def command(
    runs: tuple[str, ...],
    path: str | None,
    archived: bool,
    states: frozenset[str],
    all_elements: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """
    List the runs, or each RUN: its state, since when, where, and why.

    An array or sweep is one line with counts, and one line for each kind of failure among its
    elements. RUN is a name, an element, or a pattern: `sweep`, `arr[3-7]`, `sweep[lr=0.1]`,
    `train*`. A name lists its elements. A run that waits shows its first reason; `fleetform why
    RUN` shows all of them. DURATION is the time for which the attempts of a run have run, without
    the pauses between them; of an array or sweep, the time from its first start to its last end. A
    duration with a question mark, such as `3m20s?`, ends when the host of the run was last heard:
    the host does not answer.
    """
    from fleetform.app.clock import SystemClock
    from fleetform.app.controllers import find_controller
    from fleetform.cli.run_list import RunListing, RunQuery
    from fleetform.model.override import holding
    from fleetform.views.overrides import in_force_notice
    from fleetform.views.run_list import counts_text
    from fleetform.views.runs import runs_table

    workspace = open_workspace(or_default(path))
    listing = RunListing(open_reader(workspace), RunQuery(runs, states, archived, all_elements))
    out = screen()
    if watch:
        from fleetform.cli.full_screen import can_redraw
        from fleetform.cli.run_list import print_changes, redraw

        if can_redraw(out) and not as_json:
            redraw(listing, workspace, out)
        else:
            print_changes(listing, workspace, out, as_json=as_json)
        return
    now_ms = SystemClock().now_ms()
    rows = listing.rows(now_ms)
    if as_json:
        out.json(rows)
        return
    if notice := in_force_notice(holding(listing.book.overrides, now_ms)):
        error_screen().labelled("note", notice)
    if not rows:
        out.line("no runs in these states" if states else "no runs", "dim")
        if runs and not states:
            error_screen().labelled("help", "`--all` lists archived runs too")
        return
    listed = listing.fold(rows)
    out.table(runs_table(listed.rows, now_ms=now_ms))
    out.flush()
    if out.interactive and len(rows) > 1:
        # Not in a pipe: `grep -c done` counts runs there.
        out.line(f"{len(rows)} runs: {counts_text(rows)}", "dim")
    _say_unlisted(listed.unlisted)
    if any(row.state not in FINAL for row in rows) and find_controller(workspace) is None:
        error_screen().labelled("help", not_driven(workspace))


def _say_unlisted(unlisted: Mapping[str, int]) -> None:
    for name, count in unlisted.items():
        error_screen().labelled(
            "help", f"`fleetform ps {name} --state failed` lists the {count} elements that failed"
        )
