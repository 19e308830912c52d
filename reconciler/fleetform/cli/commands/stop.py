"""`fleetform stop`: end runs by name."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import tree_option
from fleetform.cli.names import complete_runs, say_of_each, with_elements
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.tree import open_reader, open_workspace
from fleetform.cli.who import who_asks
from fleetform.cli.words import NOBODY_DRIVES

_EXAMPLES = (
    ("fleetform stop train", "End the run: its checkpoint signal, TERM, then KILL"),
    ("fleetform stop 'sweep[lr=0.1]'", "End one element of a sweep"),
    ("fleetform stop sweep", "End all elements that are not over"),
)


@make_command("stop", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@tree_option
def command(names: tuple[str, ...], path: str | None) -> None:
    """
    End each RUN that is not over; a sweep's name stands for all its elements.

    A run that was stopped stays stopped: it is not planned again until it changes, or until
    `fleetform rerun`.
    """
    from fleetform.wiring.requests import stop_runs

    workspace = open_workspace(path)
    wanted = with_elements(open_reader(workspace), names)
    stopping = stop_runs(workspace, wanted, who_asks())
    out = screen()
    say_of_each(out, stopping, "asked to stop")
    say_of_each(
        out, tuple(name for name in wanted if name not in set(stopping)), "was over already"
    )
    if stopping and workspace.manager() is None:
        error_screen().labelled("help", NOBODY_DRIVES)
