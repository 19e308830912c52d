"""`fleetform cost`: what hosts of clouds have cost, by fleet and by run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.screen import screen
from fleetform.cli.selection import unknown
from fleetform.cli.tree import open_reader, open_workspace, or_default

if TYPE_CHECKING:
    from fleetform.model.ports import Reader

_EXAMPLES = (
    ("fleetform cost", "List what each fleet on a cloud and each run there has cost"),
    ("fleetform cost train", "Show one fleet or run, or each element of a sweep"),
    ("fleetform cost fleet/gpus", "The same of the fleet, if a run has its name too"),
    ("fleetform cost --format json", "The same as JSON for scripts, in micro-dollars"),
)


@make_command("cost", examples=_EXAMPLES)
@click.argument("name", required=False)
@directory_option
@json_option
def command(name: str | None, path: str | None, as_json: bool) -> None:
    """
    List what fleets on clouds have cost so far, and which part of it each run has used.

    A host costs its price from the answer to its creation to the answer to its release, or until it was found to exist no longer. A run has the time in which
    its jobs ran, and of a host that it shares its largest share of CPUs, memory or GPUs. Prices are those of the
    catalogue when the host was created; disks, traffic and own hosts are not counted.
    """
    from fleetform.app.clock import SystemClock
    from fleetform.views.cost import cost_rows, cost_table, disks_text, total_text

    kind, name = _kind_and_name(name)
    reader = open_reader(open_workspace(or_default(path)))
    found = cost_rows(reader.read_spending(), name=name, now_ms=SystemClock().now_ms())
    rows = tuple(row for row in found if kind in {"", row.kind})
    if name is not None and not rows:
        _require_known(reader, kind, name)
    out = screen()
    none = (
        f"no host of a cloud was created for {name}"
        if name
        else "no host of a cloud was created yet"
    )
    out.rows(rows, cost_table, none=none, as_json=as_json)
    if as_json:
        return
    notes = [total_text(rows), "" if name else disks_text(rows, reader.read_live())]
    for note in filter(None, notes):
        out.line(note, "dim")


_KINDS = ("fleet", "run")


def _kind_and_name(typed: str | None) -> tuple[str, str | None]:
    """Read `fleet/gpus`, `run/train`, or a name of either kind."""
    kind, slash, name = (typed or "").partition("/")
    return (kind, name) if slash and kind in _KINDS else ("", typed)


def _require_known(reader: Reader, kind: str, name: str) -> None:
    from fleetform.spec.names import split_element

    kinds = (kind,) if kind else _KINDS
    found = {key.name for key in reader.read_live().resources if key.kind in kinds}
    found |= {split_element(one)[0] for one in found}
    if name not in found:
        raise unknown(" or ".join(kinds), name, sorted(found))
