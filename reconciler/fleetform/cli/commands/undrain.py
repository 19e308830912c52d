"""`fleetform undrain`: have hosts get work again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.commands.drain import FleetHost, names_host, undrained
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.selection import unknown

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.spec.desired import ResourceKey

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
        host, said = one.name_in(source), editor.said(source, "drain")
        rest = undrained(said, host, str(one))
        if host and not names_host(said, host):
            _refuse_unknown(editor, source.key, host)
        editor.set(source, ("drain",), ABSENT if rest is None else rest)
    names = ", ".join(map(str, wanted))
    return finish(workspace, editor, options, message=f"undrain {names}")


def _refuse_unknown(editor: Editor, fleet: ResourceKey, host: str) -> None:
    """Refuse a name that no host of the fleet has; a host that was not drained stays as it is."""
    from fleetform.spec.checks.hosts import hosts_of, nodes_max

    assert editor.loaded.desired is not None
    document = editor.loaded.desired.resources[fleet].document
    if "ssh_config" in document:
        known = [one["hostname"] for one in hosts_of(document)]
    else:
        known = [f"{fleet.name}-{number}" for number in range(nodes_max(document) or 0)]
    if host not in known:
        raise unknown(f"host of fleet {fleet.name}", host, known)
