"""`fleetform doctor`: what clouds need on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.exit import Exit
from fleetform.cli.screen import error_screen, say_line, screen
from fleetform.cli.tree import load, open_workspace

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace

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
    is changed unless --install-pulumi is given. Outside an environment, all but the credentials is checked.
    Environments without fleets on clouds need none of this.
    """
    from fleetform.app.doctor import check_tools, install_tools, places_of
    from fleetform.app.paths import state_home
    from fleetform.views.doctor import doctor_table

    workspace = _workspace(path)
    where = (workspace.state, workspace.environment.uid) if workspace else (state_home(), "")
    if install_pulumi:
        install_tools(*where, say_line)
    places = {}
    if workspace is not None:
        desired = load(workspace, keep_going=True).desired
        assert desired is not None, "loading has refused it"
        places = places_of(desired)
    rows = check_tools(*where, places)
    out = screen()
    out.rows(rows, doctor_table, none="", as_json=as_json)
    if not as_json:
        for row in rows:
            if row.advice:
                out.line(f"help: {row.name}: {row.advice}", "dim")
    if not places:
        out.flush()
        error_screen().labelled("note", _UNCHECKED[workspace is not None])
    return Exit.OK if all(row.is_ok for row in rows) else Exit.ERROR


_UNCHECKED = {
    False: "no environment here, so no credentials were checked; `-C PATH` names an environment",
    True: "no fleet on a cloud is declared here, so no credentials were checked",
}
"""By whether there is an environment."""


def _workspace(path: str | None) -> Workspace | None:
    """Open the environment; None: there is none here and none was named. People install before they create one."""
    from fleetform.app.workspace import default_root, root_around

    if path is None and root_around() is None:
        root = default_root()
        return None if root is None else open_workspace(str(root))
    return open_workspace(path)
