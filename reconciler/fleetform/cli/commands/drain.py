"""`fleetform drain`: have hosts get no more work."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.arguments import REASON
from fleetform.cli.command import command as make_command
from fleetform.cli.drains import FleetHost, drained
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor

_EXAMPLES = (
    ("fleetform drain local --reason 'New disks'", "Drain all hosts of a fleet"),
    ("fleetform drain local/local-1 --reason 'Fan 3 is loud'", "Drain one host"),
    ("fleetform drain gpus --reason 'New driver' --apply -y", "Drain all hosts of a fleet at once"),
)


@make_command("drain", examples=_EXAMPLES)
@click.argument("addresses", nargs=-1, required=True, metavar="FLEET[/HOST]...")
@click.option(
    "--reason",
    required=True,
    type=REASON,
    metavar="TEXT",
    help="Reason; runs that wait for these hosts show it.",
)
@edit_options
def command(addresses: tuple[str, ...], reason: str, **typed: Any) -> int:
    """
    Drain hosts: running jobs finish, no new ones start.

    Writes `drain` into the document of each FLEET, for all its hosts or for one HOST. `fleetform
    fleet show FLEET` shows what still runs there. `fleetform undrain` removes the drain.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    wanted = [FleetHost.parse(address) for address in addresses]
    for one in wanted:
        source = editor.find(one.fleet, kinds=("fleet",))
        host = one.name_in(source)
        editor.set(source, ("drain",), drained(editor.said(source, "drain"), host, reason))
    names = ", ".join(map(str, wanted))
    return finish(workspace, editor, options, message=f"drain {names}: {reason}")
