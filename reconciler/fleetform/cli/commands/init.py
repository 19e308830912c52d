"""`fleetform init`: an environment that runs as it is, and an editor that knows its language."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen

_EXAMPLES = (
    ("fleetform init my-lab", "Make the folder my-lab with an environment of that name"),
    ("fleetform init --name vision .", "Make one here, under a name of its own"),
)

_NAME = re.compile(r"[a-z][a-z0-9-]{1,40}")
_SCHEMA_FOLDER = ".fleetform/schemas"
# The one schema that knows all kinds: editors take it by this name.
_SCHEMA = "fleetform.json"

_ENVIRONMENT = """\
{modeline}
type: environment
name: {name}
# Stamped on everything that is made from this tree. Commit it and never change it: with
# another uid, fleetform no longer knows what it made.
uid: {uid}
"""

_FLEET = """\
{modeline}
# This machine, with what it has. `fleetform fleet list` shows it once it is applied.
type: fleet
name: local
nodes: 1
local: true
"""

_TASK = """\
{modeline}
# Runs once. Change the commands and it is planned to run again; change nothing and it is done.
type: task
name: hello
commands:
  - echo "hello from $FLEETFORM_RUN_NAME"
resources:
  cpu: 1
"""


@make_command("init", examples=_EXAMPLES)
@click.argument("path", required=False, default=".", type=click.Path(file_okay=False))
@click.option("--name", help="Name of the environment.  [default: the folder's]")
def command(path: str, name: str | None) -> None:
    """
    Make a new environment in PATH, with a fleet and a task as examples.

    Files that are there already are left as they are.
    """
    root = Path(path).resolve()
    chosen = name or _name_of(root)
    if not _NAME.fullmatch(chosen):
        raise Refused(
            f"`{chosen}` cannot be the name of an environment",
            advice="a name has 2 to 41 lower-case letters, digits and hyphens, and starts with a "
            "letter: pass --name",
        )
    out = screen()
    written = 0
    for relative, text in _files(chosen).items():
        if _write_new(root / relative, text):
            written += 1
            out.line(f"wrote {Path(path) / relative}", "good")
        else:
            out.line(f"kept  {Path(path) / relative}, which was there", "dim")
    if written:
        where = "" if path == "." else f" {path}"
        out.line()
        out.line(f"Next: `fleetform plan{where}` shows what would be made.")


def _name_of(root: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "-", root.name.lower()).strip("-")


def _files(name: str) -> dict[str, str]:
    """All files of a new environment by relative path, in the order people should read them."""
    uid = uuid.uuid4().hex
    top = _modeline(0)
    below = _modeline(1)
    files = {
        "environment.yaml": _ENVIRONMENT.format(modeline=top, name=name, uid=uid),
        "fleets/local.yaml": _FLEET.format(modeline=below),
        "tasks/hello.yaml": _TASK.format(modeline=below),
        ".vscode/settings.json": _vscode(),
    }
    files.update({f"{_SCHEMA_FOLDER}/{file}": text for file, text in _schemas().items()})
    return files


def _modeline(depth: int) -> str:
    # Relative, so that the editor completes without a network and in every clone.
    return f"# yaml-language-server: $schema={'../' * depth}{_SCHEMA_FOLDER}/{_SCHEMA}"


def _vscode() -> str:
    # Not every YAML of the folder: a workflow or a chart beside it has a language of its own.
    patterns = [f"/{folder}/**/*.yaml" for folder in ("fleets", "volumes", "tasks")]
    schemas = {f"{_SCHEMA_FOLDER}/{_SCHEMA}": ["/environment.yaml", *patterns]}
    return json.dumps({"yaml.schemas": schemas}, indent=2) + "\n"


def _schemas() -> dict[str, str]:
    from fleetform.spec.schema import generate

    return generate()


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there; False where one is, whatever it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True
