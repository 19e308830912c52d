"""`fleetform init`: an environment that runs as it is, and an editor that knows its language."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

import click

from fleetform.cli.command import command as make_command
from fleetform.cli.failure import Refused
from fleetform.cli.screen import screen

_EXAMPLES = (
    ("fleetform init my-lab", "Create the folder my-lab with an environment of that name"),
    ("fleetform init --name vision .", "Create the environment vision in the current folder"),
    (
        "fleetform init --editor jetbrains",
        "Write the settings for PyCharm and other JetBrains editors",
    ),
)

_EDITORS = ("vscode", "jetbrains", "none")

_ENVIRONMENT = """\
{modeline}
type: environment
name: {name}
# Every host and volume of this environment is marked with this uid. Commit it and never
# change it: with another uid, fleetform does not recognise its resources.
uid: {uid}
"""

_FLEET = """\
{modeline}
# This machine with all of its hardware. After `fleetform apply`, `fleetform fleet list` shows it.
type: fleet
name: local
nodes: 1
local: true
"""

_TASK = """\
{modeline}
# Runs once. If you change the commands, the next plan runs it again.
type: task
name: hello
commands:
  - echo "hello from $FLEETFORM_RUN_NAME"
resources:
  cpu: 1
"""


@make_command("init", examples=_EXAMPLES)
@click.argument("path", required=False, default=".", type=click.Path(file_okay=False))
@click.option("--name", help="Name of the environment.  [default: the name of the folder]")
@click.option(
    "--editor",
    "editors",
    type=click.Choice(_EDITORS),
    multiple=True,
    help="Editor to write settings for; can be repeated.  [default: editors with a settings folder, else vscode]",
)
def command(path: str, name: str | None, editors: tuple[str, ...]) -> None:
    """
    Create an environment in PATH, with this machine as its fleet and with a task as an example.

    Existing files are not changed. An environment that exists gets the missing files, without the
    task. Editors with the YAML language server need no settings: the
    first line of each document names its schema.
    """
    from fleetform.spec.convert.conversion import derive_name
    from fleetform.spec.names import NAME

    root = Path(path).resolve()
    chosen = name or derive_name(root.name, otherwise="lab")
    if not NAME.fullmatch(chosen):
        raise Refused(
            f"`{chosen}` cannot be the name of an environment",
            advice="a name has 2 to 41 lower-case letters, digits and hyphens, and starts with a "
            "letter: pass --name",
        )
    settings = editor_settings(editors or _editors_of(root))
    out = screen()
    written = 0
    # Documents that are there are no place for an example that runs.
    documents = _files(chosen, with_task=not (root / "environment.yaml").exists())
    for relative, text in {**documents, **settings, **_schemas()}.items():
        if _write_new(root / relative, text):
            written += 1
            out.line(f"wrote {Path(path) / relative}", "good")
        else:
            out.line(f"kept  {Path(path) / relative}, which exists already", "dim")
            if relative in settings and not _is_same(root / relative, relative):
                out.labelled("help", f"for completion {missing_setting(relative)}")
    if written:
        where = "" if path == "." else f" -C {quote(path)}"
        out.line()
        out.line(f"Next: `fleetform plan{where}` shows what would be created.")


def _editors_of(root: Path) -> tuple[str, ...]:
    """The editors that are used in this folder, as far as they have left traces."""
    folders = {"vscode": ".vscode", "jetbrains": ".idea"}
    used = tuple(editor for editor, folder in folders.items() if (root / folder).is_dir())
    return used or ("vscode",)


def _files(name: str, *, with_task: bool) -> dict[str, str]:
    """The documents of a new environment by relative path, in the order people should read them."""
    uid = uuid.uuid4().hex
    below = modeline(1)
    return {
        "environment.yaml": _ENVIRONMENT.format(modeline=modeline(0), name=name, uid=uid),
        "fleets/local.yaml": _FLEET.format(modeline=below),
        **({"tasks/hello.yaml": _TASK.format(modeline=below)} if with_task else {}),
    }


def _schemas() -> dict[str, str]:
    from fleetform.spec.schema import editor_files

    return {f"{SCHEMA_FOLDER}/{file}": text for file, text in editor_files().items()}


def _is_same(path: Path, relative: str) -> bool:
    return says_the_same(relative, path.read_text(encoding="utf-8", errors="replace"))


def _write_new(path: Path, text: str) -> bool:
    """Write a file that is not there; False where one is, whatever it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    return True


# What `init` writes for editors: which schema holds for which files, in the form that each editor reads.
# Everything is a file in the environment and leads to a file in the environment, so that it works
# in every clone, without a network, and says the same to everybody who opens it.

SCHEMA_FOLDER = ".fleetform/schemas"
_SCHEMA = f"{SCHEMA_FOLDER}/fleetform.json"

# Not every YAML of the folder: a workflow or a chart next to it has a language of its own. A file
# elsewhere says it in its first line.
_FOLDERS = ("fleets", "volumes", "runs", "tasks", "services")
_FILES = ("environment.yaml",)


def modeline(depth: int) -> str:
    """The first line of a document that lies `depth` folders below the environment's."""
    # Relative, so that the editor completes without a network and in every clone.
    return f"# yaml-language-server: $schema={'../' * depth}{_SCHEMA}"


def editor_settings(editors: Sequence[str]) -> dict[str, str]:
    """The files of the editors named, by path in the environment."""
    files = {}
    if "vscode" in editors:
        files[".vscode/settings.json"] = _json({"yaml.schemas": {_SCHEMA: _patterns()}})
        files[".vscode/extensions.json"] = _json({"recommendations": ["redhat.vscode-yaml"]})
    if "jetbrains" in editors:
        files[".idea/jsonSchemas.xml"] = _jetbrains()
    return files


def missing_setting(path: str) -> str:
    """What to add by hand to a settings file that `init` did not write."""
    if path.endswith("settings.json"):
        return f'add `"yaml.schemas": {json.dumps({_SCHEMA: _patterns()})}` to it'
    if path.endswith("extensions.json"):
        return "add `redhat.vscode-yaml` to its `recommendations`"
    return f"map `{_SCHEMA}` to the environment's files in Settings, JSON Schema Mappings"


def says_the_same(path: str, text: str) -> bool:
    """Whether a settings file that is there already names what would have been written."""
    return ("redhat.vscode-yaml" if path.endswith("extensions.json") else _SCHEMA) in text


def _patterns() -> list[str]:
    # A leading slash is the folder that is open; without it any folder of that name would do.
    return [
        *(f"/{name}" for name in _FILES),
        *(f"/{folder}/**/*.{suffix}" for folder in _FOLDERS for suffix in ("yaml", "yml")),
    ]


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def _jetbrains() -> str:
    from xml.etree import ElementTree as ET

    project = ET.Element("project", version="4")
    component = ET.SubElement(project, "component", name="JsonSchemaMappingsProjectConfiguration")
    entries = ET.SubElement(ET.SubElement(component, "state"), "map")
    value = ET.SubElement(ET.SubElement(entries, "entry", key="fleetform"), "value")
    info = ET.SubElement(value, "SchemaInfo")
    said = {
        "name": "fleetform",
        "relativePathToSchema": _SCHEMA,
        "schemaVersion": "JSON Schema version 7",
    }
    for name, text in said.items():
        ET.SubElement(info, "option", name=name, value=text)
    patterns = ET.SubElement(info, "option", name="patterns")
    items = ET.SubElement(patterns, "list")
    folders = ({"directory": "true", "path": one, "mappingKind": "Directory"} for one in _FOLDERS)
    for options in (*({"path": name} for name in _FILES), *folders):
        item = ET.SubElement(items, "Item")
        for name, text in options.items():
            ET.SubElement(item, "option", name=name, value=text)
    ET.indent(project)
    text = ET.tostring(project, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'
