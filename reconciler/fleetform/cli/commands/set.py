"""`fleetform set`: change fields of a document."""

from __future__ import annotations

from typing import Any

import click

from fleetform.cli.arguments import parse_setting
from fleetform.cli.command import command as make_command
from fleetform.cli.editing import EditOptions, edit_options, finish, open_editor

_EXAMPLES = (
    ("fleetform set run/train priority=10", "Change a field; comments stay where they are"),
    ("fleetform set train resources.gpu=H100:2 env.LR=0.1", "Change several fields, all or none"),
    ("fleetform set train max_duration-", "Remove a field"),
    ("fleetform set fleet/gpus tags.team=vision --commit", "Change a field and commit the change"),
    ("fleetform set environment rules.delete_count=3", "Change the document of the environment"),
)


@make_command("set", examples=_EXAMPLES)
@click.argument("address", metavar="ADDRESS")
@click.argument("changes", nargs=-1, required=True, metavar="FIELD=VALUE...")
@edit_options
def command(address: str, changes: tuple[str, ...], **typed: Any) -> int:
    """
    Change fields of a document: write VALUE into FIELD of ADDRESS; FIELD- removes a field.

    Values are written as in YAML, and nested fields with dots: `resources.gpu`. A field of a base
    or a patch is changed by a patch in environment.yaml. The edited configuration is checked first:
    a wrong value is refused, and nothing is written.
    """
    options = EditOptions.of(typed)
    wanted = [parse_setting(change) for change in changes]
    workspace, editor = open_editor(options)
    source = editor.find(address)
    for path, value in wanted:
        editor.set(source, path, value)
    fields = ", ".join(".".join(map(str, path)) for path, _ in wanted)
    return finish(workspace, editor, options, message=f"set {fields} of {source.key}")
