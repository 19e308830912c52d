"""`fleetform set`: change fields of a document."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor
from fleetform.cli.settings import parse_setting

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
    wanted = [parse_setting(change) for change in changes]
    workspace, editor = open_editor(options)
    source = editor.find(address)
    for path, value in wanted:
        editor.set(source, path, value)
    fields = ", ".join(".".join(map(str, path)) for path, _ in wanted)
    return finish(workspace, editor, options, message=f"set {fields} of {source.key}")
