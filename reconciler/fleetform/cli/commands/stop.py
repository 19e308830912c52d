"""`fleetform stop`: end runs by name."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import tree_option
from fleetform.cli.names import complete_runs, with_elements
from fleetform.cli.screen import screen
from fleetform.cli.tree import open_reader, open_workspace
from fleetform.cli.who import who_asks

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
    for name in stopping:
        out.line(f"{name}: asked to stop")
    for name in wanted:
        if name not in set(stopping):
            out.line(f"{name}: was over already", "dim")
    if stopping and workspace.manager() is None:
        out.line()
        out.line(
            "Nobody drives the runs now: `fleetform apply` or `fleetform serve` ends them.", "warn"
        )
