"""`fleetform volume`: where data lies, and who uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import directory_option, group, json_option
from fleetform.cli.screen import screen
from fleetform.cli.selection import unknown
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleetform.views.volumes import VolumeRow

_EXAMPLES = (
    ("fleetform volume list", "List the volumes and the runs that mount them"),
    ("fleetform volume show data", "Show one volume with the runs that use it"),
    ("fleetform volume list --snapshots", "List the snapshots of deleted volumes"),
)


@group("volume", examples=_EXAMPLES)
def command() -> None:
    """List the applied volumes, or show one with the runs that use it."""


@command.command("list", examples=(_EXAMPLES[0], _EXAMPLES[2]))
@click.option("--snapshots", is_flag=True, help="List the snapshots of deleted volumes instead.")
@directory_option
@json_option
def list_volumes(snapshots: bool, path: str | None, as_json: bool) -> None:
    """List the volumes: their directory or disk, their deletion policy, and the runs that mount them."""
    from fleetform.views.volumes import volume_rows, volumes_table

    if snapshots:
        _list_snapshots(path, as_json=as_json)
        return
    rows = volume_rows(open_reader(open_workspace(or_default(path))).read_live())
    screen().rows(rows, volumes_table, none="no volumes", as_json=as_json)


@command.command("show", examples=_EXAMPLES[1:2])
@click.argument("name")
@directory_option
@json_option
def show_volume(name: str, path: str | None, as_json: bool) -> None:
    """Show the volume NAME: its directory or disk, and the active runs that mount it."""
    from fleetform.views.volumes import volume_rows, volumes_table

    workspace = open_workspace(or_default(path))
    rows = volume_rows(open_reader(workspace).read_live())
    found = [row for row in rows if row.name == name]
    if not found:
        raise unknown("volume", name, [row.name for row in rows])
    out = screen()
    if as_json:
        out.json(found[0])
        return
    out.table(volumes_table(found))
    lines = [
        *_place_lines(found[0], workspace.paths.volumes),
        *(f"used by run/{user}" for user in found[0].users),
    ]
    for line in ["", *lines] if lines else ():
        out.line(line)


def _place_lines(row: VolumeRow, volumes: Path) -> Iterator[str]:
    """Say where a volume lies, as far as its table does not; `volumes` is the environment's folder for them."""
    if row.backend:
        if not row.disk:
            yield "disk: not created yet"
    elif row.hosts:
        yield f"directory: {row.path}"
        yield from (f"host {one.host}: {one.problem or 'has the directory'}" for one in row.hosts)
    else:
        # An absolute path stays what it is.
        yield f"directory: {volumes / row.path}"


def _list_snapshots(path: str | None, *, as_json: bool) -> None:
    """Only a person removes a snapshot; the ledger does not know of that, so this machine is asked."""
    from fleetform.views.volumes import snapshot_rows, snapshots_table

    workspace = open_workspace(or_default(path))
    found = open_reader(workspace).read_snapshots()
    # Of disks the cloud would have to be asked, and this command asks none.
    disks = {one.place: f"{one.place} in {one.path}" for one in found if one.is_of_disk}
    places = {one.place: workspace.paths.volumes / one.place for one in found if not one.is_of_disk}
    rows = snapshot_rows(
        found,
        places={place: str(absolute) for place, absolute in places.items()} | disks,
        there={place for place, absolute in places.items() if absolute.is_dir()} | disks.keys(),
    )
    screen().rows(rows, snapshots_table, none="no snapshots", as_json=as_json)
