"""`fleetform import`: declare that an existing resource is adopted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused
from fleetform.cli.tree import maybe_reader

if TYPE_CHECKING:
    from fleetform.app.edit import Editor
    from fleetform.app.workspace import Workspace
    from fleetform.spec.desired import ResourceKey

_EXAMPLES = (
    ("fleetform import volume/data", "Adopt the directory that the document of `data` names"),
    (
        "fleetform import volume/data --fleet local --at /srv/data",
        "Declare a volume, and adopt the directory with its data",
    ),
    ("fleetform import fleet/local --apply", "Adopt released hosts of a fleet at once"),
)
_FILE = "volumes.yaml"


@make_command("import", examples=_EXAMPLES)
@click.argument("address", metavar="ADDRESS")
@click.option(
    "--fleet", metavar="NAME", help="With --at: fleet of a volume that is not declared yet."
)
@click.option(
    "--at",
    "place",
    metavar="DIR",
    help="With --fleet: directory of a volume that is not declared yet.",
)
@click.option(
    "--file",
    default=_FILE,
    show_default=True,
    help="File for the new document, with --fleet and --at.",
)
@edit_options
def command(address: str, fleet: str | None, place: str | None, file: str, **typed: Any) -> int:
    """
    Adopt existing volumes and hosts: write ADDRESS into `import:` of environment.yaml.

    A volume then uses the existing directory with all its data; a fleet gets back the released
    hosts of this environment. Nothing happens before the change is applied. The entry may stay
    after that.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    key = _key(address)
    _refuse_known(workspace, key)
    if (fleet is None) != (place is None):
        raise Refused("--fleet and --at belong together", advice="pass both, or none")
    if _is_declared(editor, key):
        if fleet is not None:
            raise Refused(
                f"{key} is declared already",
                advice="leave out --fleet and --at, or change its document",
            )
    else:
        _declare(editor, key, fleet, place, file)
    editor.add_address("import", key)
    return finish(workspace, editor, options, message=f"import {key}")


def _key(address: str) -> ResourceKey:
    from fleetform.spec.desired import ResourceKey
    from fleetform.spec.kinds import ADOPTABLE
    from fleetform.spec.names import parse_address

    try:
        found = parse_address(address)
    except ValueError as error:
        raise Refused(str(error), advice="write for example `volume/data`") from error
    if found.kind in {"", "run"}:
        raise Refused(
            f"`{address}` is not a volume or a fleet; only these can be imported",
            advice=f"write `volume/{found.name}` or `fleet/{found.name}`",
        )
    if found.kind not in ADOPTABLE:
        raise Refused(
            f"a {found.kind} has no directory and no hosts, so it cannot be imported",
            advice="declare it; `fleetform plan` shows what would be created",
        )
    return ResourceKey(found.kind, found.name)


def _refuse_known(workspace: Workspace, key: ResourceKey) -> None:
    reader = maybe_reader(workspace)
    row = None if reader is None else reader.read_live().resources.get(key)
    if row is not None and not row.archived:
        raise Refused(
            f"{key} is in the ledger already: there is nothing to import",
            advice=f"`fleetform {key.kind}` shows it",
        )


def _is_declared(editor: Editor, key: ResourceKey) -> bool:
    assert editor.loaded.desired is not None, "the editor refuses a configuration without one"
    desired = editor.loaded.desired
    return key in desired.resources or key in desired.beyond or key in desired.broken


def _declare(
    editor: Editor, key: ResourceKey, fleet: str | None, place: str | None, file: str
) -> None:
    if key.kind != "volume":
        raise Refused(
            f"no document declares {key}",
            advice="declare the fleet with the hardware of its hosts: import cannot detect it",
        )
    if fleet is None or place is None:
        raise Refused(
            f"no document declares {key}",
            advice=f"name its fleet and directory: `fleetform import {key} --fleet NAME --at DIR`",
        )
    document = {"type": "volume", "name": key.name, "fleet": fleet, "path": place}
    editor.add_document(file, document, key)
