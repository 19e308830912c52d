"""`fleetform rerun`: run finished runs again."""

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
    ("fleetform rerun train", "Run it once more, as it was applied last"),
    ("fleetform rerun sweep", "Run all elements that are over once more"),
)


@make_command("rerun", examples=_EXAMPLES)
@click.argument("names", nargs=-1, required=True, metavar="RUN...", shell_complete=complete_runs)
@tree_option
def command(names: tuple[str, ...], path: str | None) -> None:
    """
    Run each RUN that is over once more; a sweep's name stands for all its elements.

    The document that was applied last is run. For one that has changed in the tree, `apply`.
    """
    from fleetform.wiring.requests import rerun_runs

    workspace = open_workspace(path)
    wanted = with_elements(open_reader(workspace), names)
    again = rerun_runs(workspace, wanted, who_asks())
    out = screen()
    say_of_each(out, again, "runs again")
    say_of_each(out, tuple(name for name in wanted if name not in set(again)), "is not over yet")
    if again and workspace.manager() is None:
        error_screen().labelled("help", NOBODY_DRIVES)
