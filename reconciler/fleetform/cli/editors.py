"""
What `init` writes for editors: which schema holds for which files, as each editor wants to be told.

Everything is a file in the environment and leads to a file in the environment, so that it works
in every clone, without a network, and says the same to everybody who opens it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

SCHEMA_FOLDER = ".fleetform/schemas"
_SCHEMA = f"{SCHEMA_FOLDER}/fleetform.json"

# Not every YAML of the folder: a workflow or a chart beside it has a language of its own. A file
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
    """What to add by hand to a settings file that somebody else wrote."""
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
