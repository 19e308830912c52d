"""`fleetform blame`: who made a resource what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.command import directory_option, json_option
from fleetform.cli.failure import Refused
from fleetform.cli.screen import error_screen, screen
from fleetform.cli.selection import some
from fleetform.cli.tree import open_reader, open_workspace, or_default
from fleetform.model.figures import counted
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from fleetform.model.live import Live

_EXAMPLES = (
    (
        "fleetform blame train",
        "Show for each field of the run who set it, when, and in which commit",
    ),
    ("fleetform blame fleet/local --events", "List the events of a fleet as well"),
)


@make_command("blame", examples=_EXAMPLES)
@click.argument("name", metavar="NAME")
@directory_option
@click.option("--events", is_flag=True, help="List the events of the resource as well.")
@json_option
def command(name: str, path: str | None, events: bool, as_json: bool) -> None:
    """
    Show who last changed each field of NAME: the apply, the commit and the user.

    NAME is a kind and a name, `fleet/local`, or a name alone if only one resource has it. Below the
    fields are all applies that changed the resource, also under its earlier names.
    """
    from fleetform.app.history import past_of
    from fleetform.model.redaction import Seal
    from fleetform.views.history import (
        event_rows,
        events_table,
        field_origins,
        fields_table,
        touch_rows,
        touches_table,
    )

    reader = open_reader(open_workspace(or_default(path)))
    live = reader.read_live()
    key = _find(live, name)
    past = past_of(reader, key)
    row = live.resources[key]
    document = row.parsed
    fields = field_origins(key.kind, document, past, Seal(live.environment_uid))
    touches = touch_rows(past)
    happened = event_rows(reader.read_resource_events(key)) if events else ()
    out = screen()
    if as_json:
        out.json({"address": str(key), "fields": fields, "changes": touches, "events": happened})
        return
    out.line(str(key), "bold")
    out.table(fields_table(fields))
    if row.run is not None and (row.run.stale or row.run.executed):
        error_screen().labelled(
            "note",
            f"the last run executed an earlier version of this document; `fleetform rerun {key.name}`"
            " runs this one",
        )
    if touches:
        out.line()
        out.table(touches_table(touches))
    if happened:
        out.line()
        out.table(events_table(happened))


def _find(live: Live, name: str) -> ResourceKey:
    kind, slash, rest = name.partition("/")
    if slash and ResourceKey(kind, rest) in live.resources:
        return ResourceKey(kind, rest)
    found = [] if slash else [key for key in live.resources if key.name == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise Refused(
            f"several resources are called `{name}`",
            advice=f"write one of {some([str(key) for key in sorted(found, key=lambda key: natural_order(str(key)))])}",
        )
    elements = [key for key in live.resources if key.name.startswith(f"{rest or name}[")]
    if elements:
        raise Refused(
            f"`{name}` is a sweep of {counted(len(elements), 'element')}, each with its own history",
            advice=f"name one: {some([str(key) for key in sorted(elements, key=lambda key: natural_order(str(key)))])}",
        )
    import difflib

    known = [*map(str, live.resources), *(key.name for key in live.resources)]
    near = difflib.get_close_matches(name, known, n=2, cutoff=0.6)
    raise Refused(
        f"the ledger has no resource `{name}`",
        advice=f"did you mean {' or '.join(f'`{one}`' for one in near)}?"
        if near
        else "`fleetform ps`, `fleet` and `volume` list the names",
    )
