"""`fleetform doctor`: what clouds need on this machine."""

from __future__ import annotations

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.exit import Exit
from fleetform.cli.screen import say_line, screen
from fleetform.cli.tree import load, open_workspace, or_default

_EXAMPLES = (
    ("fleetform doctor", "Check the programs and credentials that fleets on clouds need"),
    ("fleetform doctor --install-pulumi", "Install the Pulumi CLI for this user, then check"),
)


@make_command(
    "doctor",
    examples=_EXAMPLES,
    codes=((Exit.OK, "Nothing is missing."), (Exit.ERROR, "Something is missing or refused.")),
)
@click.option(
    "--install-pulumi",
    is_flag=True,
    help="Download the Pulumi CLI into ~/.pulumi unless there is one.",
)
@directory_option
@json_option
def command(install_pulumi: bool, path: str | None, as_json: bool) -> int:
    """
    Check what fleets on clouds need on this machine: libraries, the Pulumi CLI, its plugin, and credentials.

    The credentials must be of the account that each fleet declares, so AWS is asked which account they are of. Nothing
    is changed unless --install-pulumi is given. Environments without fleets on clouds need none of this.
    """
    from fleetform.app.doctor import check_tools, install_tools, places_of
    from fleetform.views.doctor import doctor_table

    workspace = open_workspace(or_default(path))
    where = (workspace.state, workspace.environment.uid)
    if install_pulumi:
        install_tools(*where, say_line)
    desired = load(workspace, keep_going=True).desired
    assert desired is not None, "loading has refused it"
    rows = check_tools(*where, places_of(desired))
    out = screen()
    out.rows(rows, doctor_table, none="", as_json=as_json)
    if not as_json:
        for row in rows:
            if row.advice:
                out.line(f"help: {row.name}: {row.advice}", "dim")
    return Exit.OK if all(row.is_ok for row in rows) else Exit.ERROR
