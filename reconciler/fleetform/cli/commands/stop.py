"""`fleetform stop`: have documents say that their runs are to end."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused
from fleetform.cli.names import complete_runs
from fleetform.cli.screen import error_screen
from fleetform.cli.wanted_runs import find_run, read_live, split_typed

_EXAMPLES = (
    ("fleetform stop train", "Write `state: stopped`; the next apply ends the run"),
    ("fleetform stop train --apply", "End it now: its checkpoint signal, TERM, then KILL"),
    ("fleetform stop sweep --commit", "End all elements of a sweep, and commit that"),
    ("fleetform stop train --branch stop-train --push", "Propose it"),
)


@make_command("stop", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@edit_options
def command(names: tuple[str, ...], **typed: Any) -> int:
    """
    Write `state: stopped` into the document of each RUN that is not over.

    The record and the result are kept, and `fleetform rerun` takes it back. A sweep's document
    stands for all its elements; `fleetform emergency stop` ends one, or what no document says.
    """
    options = EditOptions.of(typed)
    for name in names:
        if split_typed(name)[1]:
            raise _element(name)
    workspace, editor = open_editor(options)
    live = read_live(workspace)
    stopped = []
    for name in names:
        run = find_run(workspace, editor, live, name)
        if run.is_over:
            error_screen().line(f"{run.source.key.name} is over already: {run.states}", "dim")
            continue
        editor.set(run.source, ("state",), "stopped")
        stopped.append(str(run.source.key))
    message = f"stop {', '.join(stopped)}"
    return finish(workspace, editor, options, message=message, ends_work=True)


def _element(name: str) -> Refused:
    whole = split_typed(name)[0]
    return Refused(
        f"`{name}` is one element, and `state` in its document would stop them all",
        advice=f"`fleetform emergency stop '{name}' --reason …` ends it at once, "
        f"`fleetform stop {whole}` all of them",
    )
