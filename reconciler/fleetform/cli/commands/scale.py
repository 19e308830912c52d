"""`fleetform scale`: have a document say how many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused
from fleetform.model.figures import counted

if TYPE_CHECKING:
    from fleetform.app.locate import Source

_EXAMPLES = (
    ("fleetform scale local 3", "Set the fleet `local` to three hosts"),
    ("fleetform scale fleet/gpus 0 --apply", "Remove all hosts, once nothing runs there"),
    (
        "fleetform scale run/chat 4 --commit",
        "Set a service to four replicas, and commit the change",
    ),
)


@make_command("scale", examples=_EXAMPLES)
@click.argument("address", metavar="ADDRESS")
@click.argument("count", type=click.IntRange(min=0), metavar="N")
@edit_options
def command(address: str, count: int, **typed: Any) -> int:
    """
    Set the number of hosts of a fleet, or of replicas of a service, to N.

    If the document declares a range, N is the wanted number within it, and a bound changes only if
    N is outside the range. With `scaling`, N is the minimum number of replicas.
    """
    options = EditOptions.of(typed)
    workspace, editor = open_editor(options)
    source = editor.find(address, kinds=("fleet", "run"))
    if source.key.kind == "fleet":
        editor.set(source, ("nodes",), _nodes(source, count), after="name")
        what = counted(count, "host")
    else:
        editor.set(source, ("replicas",), _replicas(source, count))
        what = counted(count, "replica")
    return finish(workspace, editor, options, message=f"scale {source.key} to {what}")


def _nodes(source: Source, count: int) -> Any:
    """The fleet's `nodes` as it is written, with `count` wanted."""
    said = source.value.get("nodes")
    known = source.declared[0].document.get("nodes") if source.declared else None
    if known is None or (known["min"] == known["target"] == known["max"]):
        return count
    least, most = min(known["min"], count), known["max"]
    most = None if most is None else max(most, count)
    if not isinstance(said, dict) and count == least:
        # A range alone wants its least.
        return f"{least}..{'' if most is None else most}"
    nodes = {"min": least, "target": count, "max": most}
    return {name: number for name, number in nodes.items() if number is not None}


def _replicas(source: Source, count: int) -> Any:
    """The service's `replicas` as it is written, with `count` of them."""
    name = source.key.name
    if source.type != "service":
        raise Refused(
            f"`{name}` is a {source.type}, and runs once",
            advice=f"`fleetform set {source.key} nodes={count}` runs it on {counted(count, 'host')}",
        )
    document = source.declared[0].document if source.declared else source.value
    if document.get("groups"):
        raise Refused(
            f"the replicas of `{name}` are in groups",
            advice=f"`fleetform set {source.key} groups.0.replicas={count}` scales the first",
        )
    known = document.get("replicas")
    if not isinstance(known, dict) or known.get("min") == known.get("max"):
        return count
    most = known.get("max")
    return f"{count}..{'' if most is None else max(most, count)}"
