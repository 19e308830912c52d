"""`fleetform stop`: write into documents that their runs are to end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, in_default, open_editor
from fleetform.cli.screen import error_screen
from fleetform.cli.selection import ask_for_stop, complete_runs, find_runs, read_live, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.model.live import Live

_EXAMPLES = (
    (
        "fleetform stop train",
        "Write `state: stopped`; `fleetform apply --allow-destroy` ends the run",
    ),
    ("fleetform stop train --apply", "End the run now: its checkpoint signal, TERM, then KILL"),
    ("fleetform stop 'arr[3-7]' 'sweep[lr=0.1]'", "End elements of an array and of a sweep"),
    ("fleetform stop sweep --commit", "End all elements of a sweep, and commit the change"),
    ("fleetform stop train --branch stop-train --push", "Commit on a new branch, and push it"),
)


@make_command("stop", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@edit_options
def command(names: tuple[str, ...], **typed: Any) -> int:
    """
    Stop runs: write `state: stopped` into the document of each RUN that is not over.

    RUN is a name, an element, or a pattern: `sweep`, `arr[3-7]`, `sweep[lr=0.1]`, `train*`. The
    record and the result are kept; `fleetform rerun` undoes the stop. Without --apply, the next
    apply ends a running run only with --allow-destroy or the environment's rule `allow_destroy: true`.
    The document of a submitted
    run is not reviewed, so its stop is applied at once. `fleetform emergency stop` ends a run that
    no document declares.
    """
    from fleetform.app.submit import is_scratch

    options = in_default(EditOptions.of(typed))
    workspace, editor = open_editor(options)
    live = read_live(workspace)
    stopped: list[str] = []
    files: list[str] = []
    running: list[str] = []
    for run in find_runs(editor, live, names):
        if run.is_over:
            error_screen().line(f"{run.name} is over already: {run.states}", "dim")
            continue
        ask_for_stop(editor, run.source, run.element)
        stopped.append(f"run/{run.name}")
        files.append(run.source.file)
        if run.ends_work:
            running.append(run.name)
    if files and all(map(is_scratch, files)) and not (options.commit or options.as_json):
        options = replace(options, apply=True, yes=True)
    message = f"stop {', '.join(stopped)}"
    return finish(
        workspace,
        editor,
        options,
        message=message,
        ends_work=True,
        targets=stopped,
        needs=_permission(live, running),
    )


def _permission(live: Live | None, running: Sequence[str]) -> str:
    """Say what an apply needs to end running work; empty where it needs nothing."""
    if live is None or not running or (live.rules is not None and live.rules.allow_destroy):
        return ""
    return (
        f"`fleetform apply --allow-destroy` ends the running work of {some(running)}; without the flag,"
        " or `allow_destroy: true` in the environment's rules, a plan blocks the stop"
    )
