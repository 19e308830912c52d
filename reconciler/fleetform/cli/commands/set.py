"""`fleetform set`: change fields of a document."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.failure import Refused

_EXAMPLES = (
    ("fleetform set run/train priority=10", "Change a field; comments stay where they are"),
    ("fleetform set train resources.gpu=H100:2 env.LR=0.1", "Several at once, all or none"),
    ("fleetform set train max_duration-", "Take a field out"),
    ("fleetform set fleet/gpus tags.team=vision --commit", "Change it and commit that"),
    ("fleetform set environment rules.delete_count=3", "Change the environment's own document"),
)


@make_command("set", examples=_EXAMPLES)
@click.argument("address", metavar="ADDRESS")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
@edit_options
def command(address: str, changes: tuple[str, ...], **typed: Any) -> int:
    """
    Have the document at ADDRESS say VALUE in FIELD; FIELD- takes a field out.

    Values are written as in YAML; fields below others, with a point: `resources.gpu`. What a base
    or a patch says is changed by a patch in environment.yaml. The tree is read again first: a
    wrong value is refused, and nothing is written.
    """
    options = EditOptions.of(typed)
    wanted = [_parsed(change) for change in changes]
    workspace, editor = open_editor(options)
    source = editor.find(address)
    for path, value in wanted:
        editor.set(source, path, value)
    fields = ", ".join(".".join(map(str, path)) for path, _ in wanted)
    return finish(workspace, editor, options, message=f"set {fields} of {source.key}")


def _parsed(change: str) -> tuple[tuple[str | int, ...], Any]:
    from fleetform.wiring.editing import ABSENT

    name, equals, text = change.partition("=")
    if not equals and name.endswith("-"):
        return _steps(name[:-1], change), ABSENT
    if not equals:
        raise Refused(f"`{change}` has no value", advice=f"write `{name}=VALUE`, or `{name}-`")
    return _steps(name, change), _value(text, change)


def _steps(dotted: str, change: str) -> tuple[str | int, ...]:
    steps = dotted.split(".")
    if not all(steps):
        raise Refused(f"`{change}` names no field", advice="write for example `resources.gpu=H100`")
    if steps[0] in {"name", "type"}:
        raise Refused(
            f"`{steps[0]}` says which resource it is; another one is another resource",
            advice="edit the document by hand; `moved:` in environment.yaml says what became of it",
        )
    return tuple(steps)


def _value(text: str, change: str) -> Any:
    """Read a value as a document would; nothing behind the sign is an empty text."""
    if not text:
        return ""
    from fleetform.spec.documents import read_documents
    from fleetform.spec.findings import Level
    from fleetform.spec.nodes import plain

    nodes, findings = read_documents(text.encode("utf-8", "surrogatepass"), "")
    if len(nodes) != 1 or any(one.level is Level.ERROR for one in findings):
        raise Refused(
            f"`{change}`: this is no value in YAML", advice="put it in quotes, as in a file"
        )
    value = plain(nodes[0])
    if value is None:
        raise Refused(
            f"`{change}` sets nothing", advice=f"`{change.partition('=')[0]}-` takes it out"
        )
    return value
