"""`fleetform rerun`: have documents ask for another execution."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused
from fleetform.cli.names import complete_runs
from fleetform.cli.screen import error_screen
from fleetform.cli.wanted_runs import WantedRun, find_run, read_live, split_typed
from fleetform.model.figures import counted
from fleetform.model.recovery import NO_EVIDENCE

if TYPE_CHECKING:
    from fleetform.model.live import LiveResource
    from fleetform.wiring.editing import Editor

_EXAMPLES = (
    ("fleetform rerun train", "Raise `rerun` in its document; the next apply runs it once more"),
    ("fleetform rerun train --apply", "Run it once more now, and follow it"),
    ("fleetform rerun sweep --commit", "All elements of a sweep, and commit that"),
    ("fleetform rerun 'sweep[lr=0.1]'", "One element of it"),
)


@make_command("rerun", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@edit_options
def command(names: tuple[str, ...], **typed: Any) -> int:
    """
    Raise `rerun` in the document of each RUN that is over, above the highest it ever was.

    It runs once more as its document says now. What was stopped is no longer: `state: stopped`
    goes with it. Reverting the edit afterwards runs nothing.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    live = read_live(workspace)
    again = []
    for name in names:
        whole, element = split_typed(name)
        run = find_run(workspace, editor, live, whole)
        if not _may_run_again(run, element):
            continue
        _ask(editor, run, element)
        again.append(f"run/{name.removeprefix('run/')}")
    if options.apply and not again:
        # A script would take a success for a run that has been seen to its end.
        raise Refused(
            "nothing runs once more, and nothing was applied",
            advice="`fleetform apply` runs what has not run yet, and follows what is not over",
        )
    return finish(workspace, editor, options, message=f"run {', '.join(again)} again")


def _may_run_again(run: WantedRun, element: str) -> bool:
    """Say why not, where it cannot; of a sweep at work, what becomes of the rest."""
    say = error_screen()
    name = f"{run.source.key.name}[{element}]" if element else run.source.key.name
    meant = _meant(run, element)
    if element and not meant:
        raise Refused(
            f"`{run.source.key.name}` has no element `{element}`",
            advice="`fleetform ps` lists them; a part of the parameters means all that have it",
        )
    rows = [row for row in run.rows if row.key.name in meant]
    if not rows:
        say.line(f"{name} has not run yet: `fleetform apply` runs it", "dim")
        return False
    unfinished = [row for row in run.unfinished if row.key.name in meant and not _is_lost(row)]
    if len(unfinished) == len(rows):
        say.line(f"{name} is not over yet: {run.states}", "dim")
        return False
    if unfinished:
        say.line(
            f"{counted(len(unfinished), 'element')} of {name} not over yet: a plan holds what"
            " would end running work",
            "dim",
        )
    return True


def _meant(run: WantedRun, element: str) -> set[str]:
    """Names of the runs that are meant: all of the document's, or those of the element."""
    names = {one.key.name for one in run.source.declared}
    if not element:
        return names
    from fleetform.spec.names import parse_address

    try:
        address = parse_address(f"{run.source.key.name}[{element}]")
    except ValueError as problem:
        raise Refused(f"`{element}` is no element: {problem}") from None
    return {name for name in names if address.selects("run", name)}


def _is_lost(row: LiveResource) -> bool:
    """Nobody knows whether it ran: only a person can ask for it, which is what happens here."""
    return row.run is not None and row.run.cause == NO_EVIDENCE


def _ask(editor: Editor, run: WantedRun, element: str) -> None:
    """Raise the number, and take back what stopped it; single elements have their own."""
    source = run.source
    number = _highest(run, _meant(run, element)) + 1
    if element:
        said = source.declared and source.value.get("rerun")
        others = said if isinstance(said, dict) else {}
        editor.set(source, ("rerun",), {**others, element: number})
        return
    editor.set(source, ("rerun",), number)
    if run.stop_wanted:
        from fleetform.wiring.editing import ABSENT

        editor.set(source, ("state",), ABSENT)


def _highest(run: WantedRun, names: set[str]) -> int:
    """The highest number that was ever asked for, in the tree or of the ledger."""
    marks = [
        int(one.document.get("rerun", 0)) for one in run.source.declared if one.key.name in names
    ]
    for row in run.rows:
        if row.key.name in names:
            marks.append(int(json.loads(row.document).get("rerun", 0)))
            marks.append(row.run.rerun_mark if row.run is not None else 0)
    return max(marks, default=0)
