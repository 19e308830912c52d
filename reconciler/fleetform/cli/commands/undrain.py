"""`fleetform undrain`: have hosts get work again."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.commands.drain import FleetHost, undrained
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor

_EXAMPLES = (
    ("fleetform undrain local", "Undrain all hosts of a fleet"),
    ("fleetform undrain local/local-1 --apply -y", "Undrain one host at once"),
)


@make_command("undrain", examples=_EXAMPLES)
@click.argument("addresses", nargs=-1, required=True, metavar="FLEET[/HOST]...")
@edit_options
def command(addresses: tuple[str, ...], **typed: Any) -> int:
    """
    Undrain hosts: new jobs start on them again.

    Removes `drain` from the document of each FLEET, for all its hosts or for one HOST.
    """
    from fleetform.app.edit import ABSENT

    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    wanted = [FleetHost.parse(address) for address in addresses]
    for one in wanted:
        source = editor.find(one.fleet, kinds=("fleet",))
        rest = undrained(editor.said(source, "drain"), one.name_in(source), str(one))
        editor.set(source, ("drain",), ABSENT if rest is None else rest)
    names = ", ".join(map(str, wanted))
    return finish(workspace, editor, options, message=f"undrain {names}")
