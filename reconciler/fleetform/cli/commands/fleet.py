"""`fleetform fleet`: capacity, and what is in use of it."""

from __future__ import annotations

import click

from fleetform.cli.command import directory_option, group
from fleetform.cli.output_format import json_option
from fleetform.cli.screen import screen
from fleetform.cli.selection import unknown
from fleetform.cli.tree import open_reader, open_workspace, or_default

_EXAMPLES = (
    ("fleetform fleet list", "List the fleets and their use"),
    ("fleetform fleet show local", "Show one fleet with its instances"),
)


@group("fleet", examples=_EXAMPLES)
def command() -> None:
    """List the applied fleets, or show one with its instances."""


@command.command("list", examples=_EXAMPLES[:1])
@directory_option
@json_option
def list_fleets(path: str | None, as_json: bool) -> None:
    """List the fleets: ready hosts, jobs, and use of CPUs, memory and GPUs."""
    from fleetform.views.fleets import fleet_rows, fleets_table

    reader = open_reader(open_workspace(or_default(path)))
    rows = fleet_rows(reader.read_live(), reader.read_book().allocations)
    out = screen()
    if as_json:
        out.json(rows)
    elif rows:
        out.table(fleets_table(rows))
    else:
        out.line("no fleets", "dim")


@command.command("show", examples=_EXAMPLES[1:])
@click.argument("name")
@directory_option
@json_option
def show_fleet(name: str, path: str | None, as_json: bool) -> None:
    """Show the fleet NAME with its instances."""
    from fleetform.views.fleets import fleet_rows, fleets_table, instance_rows, instances_table

    reader = open_reader(open_workspace(or_default(path)))
    live, book = reader.read_live(), reader.read_book()
    fleets = fleet_rows(live, book.allocations)
    found = [row for row in fleets if row.name == name]
    if not found:
        raise unknown("fleet", name, [row.name for row in fleets])
    hosts = [row for row in instance_rows(live.instances, book.allocations) if row.fleet == name]
    out = screen()
    if as_json:
        out.json({"fleet": found[0], "instances": hosts})
        return
    out.table(fleets_table(found))
    if hosts:
        out.line()
        out.table(instances_table(hosts))
