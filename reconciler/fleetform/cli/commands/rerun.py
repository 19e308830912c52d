"""`fleetform rerun`: have documents ask for another execution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, in_default, open_editor
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import (
    WantedRun,
    complete_runs,
    elements_of,
    find_runs,
    read_live,
    without,
)
from fleetform.model.figures import counted
from fleetform.model.run_state import NO_EVIDENCE

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.model.live import LiveResource

_EXAMPLES = (
    ("fleetform rerun train", "Raise `rerun` in the document; the next apply runs it again"),
    ("fleetform rerun train --apply", "Run it again now, and follow it"),
    ("fleetform rerun sweep --commit", "Run all elements of a sweep again, and commit the change"),
    ("fleetform rerun 'sweep[lr=0.1]'", "Run one element again"),
)


@make_command("rerun", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@edit_options
def command(names: tuple[str, ...], **typed: Any) -> int:
    """
    Run finished runs again: raise `rerun` in the document of each RUN that is over.

    The new value is higher than any earlier one. The run executes again, as its document says now;
    `state: stopped` is removed. Reverting the edit later runs nothing.
    """
    options = in_default(EditOptions.of(typed))
    workspace, editor = open_editor(options)
    live = read_live(workspace)
    again = []
    for run in find_runs(editor, live, names):
        if not _may_run_again(run):
            continue
        _ask(editor, run)
        again.append(f"run/{run.name}")
    if options.apply and not again:
        # A script would take a success for a run that has been seen to its end.
        raise Refused(
            "nothing runs again, and nothing was applied",
            advice="`fleetform apply` runs new runs, and follows active ones",
        )
    message = f"run {', '.join(again)} again"
    return finish(workspace, editor, options, message=message, targets=again)


def _may_run_again(run: WantedRun) -> bool:
    """Say why not, where it cannot; of a sweep at work, what becomes of the rest."""
    say = error_screen()
    if not run.rows:
        say.line(f"{run.name} has not run yet: `fleetform apply` runs it", "dim")
        return False
    unfinished = [row for row in run.unfinished if not _is_lost(row)]
    if len(unfinished) == len(run.rows):
        say.line(f"{run.name} is not over yet: {run.states}", "dim")
        return False
    if unfinished:
        say.line(
            f"{counted(len(unfinished), 'element')} of {run.name} not over yet: a plan blocks"
            " changes that end running work",
            "dim",
        )
    return True


def _is_lost(row: LiveResource) -> bool:
    """Whether it ran is unknown: only a person can request another try, as here."""
    return row.run is not None and row.run.cause == NO_EVIDENCE


def _ask(editor: Editor, run: WantedRun) -> None:
    """Raise the number, and take back what stopped it; single elements have their own."""
    number = _highest(run) + 1
    if run.element:
        said = editor.said(run.source, "rerun")
        others = said if isinstance(said, dict) else {}
        editor.set(run.source, ("rerun",), {**others, run.element: number})
        _resume(editor, run)
        return
    editor.set(run.source, ("rerun",), number)
    if run.stop_wanted:
        from fleetform.app.edit import ABSENT

        editor.set(run.source, ("state",), ABSENT)


def _resume(editor: Editor, run: WantedRun) -> None:
    """Take back what stopped an element: its entry, or by an exception from an entry of several."""
    from fleetform.app.edit import ABSENT

    said = editor.said(run.source, "state")
    if said == "stopped":
        raise Refused(
            f"`{run.source.key.name}` is `state: stopped` as a whole",
            advice=f"`fleetform rerun {run.source.key.name}` runs all of its elements",
        )
    if not isinstance(said, dict):
        return
    rest = without(said, run.element)
    if any(
        state == "stopped" and elements_of(run.source, str(other)) & run.names
        for other, state in rest.items()
    ):
        rest[run.element] = "running"
    if rest != said:
        editor.set(run.source, ("state",), rest or ABSENT)


def _highest(run: WantedRun) -> int:
    """Return the highest number that was ever asked for, in the configuration or in the ledger."""
    marks = [
        int(one.document.get("rerun", 0))
        for one in run.source.declared
        if one.key.name in run.names
    ]
    for row in run.rows:
        marks.append(int(row.parsed.get("rerun", 0)))
        marks.append(row.run.rerun_mark if row.run is not None else 0)
    return max(marks, default=0)
