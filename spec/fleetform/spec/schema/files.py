"""
The files of `schemas/`, and the one that an environment keeps for its editors.

    schemas/fleetform.json, task.json, …    draft 2020-12: any document, and one of each type
    schemas/draft-07/fleetform.json         any document, in the draft that most editors read
    schemas/schemastore/catalog-entry.json  what the public catalogue of schemas would be given

The first are for programs and for whoever reads a change of the language: they are indented, and
say what a change of a field does as keywords. The second is for editors, on one line: it says the
same in words, and has all that only an editor shows. A file of each type would give editors
nothing: in the one that they read `type` says which holds.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetform.spec.schema import models
from fleetform.spec.schema.draft07 import for_editors, to_draft07
from fleetform.spec.schema.sharing import shared
from fleetform.spec.schema.walk import Schema, without
from fleetform.spec.schema.whole import any_schema, kind_schema

ALL_KINDS = "fleetform.json"
"""The schema of any document."""

EDITORS = "draft-07"
"""The folder of the twin for editors."""

CATALOG_ENTRY = "schemastore/catalog-entry.json"

_FOR_EDITORS = frozenset(
    {
        "defaultSnippets",
        "doNotSuggest",
        "markdownDescription",
        "markdownEnumDescriptions",
        "patternErrorMessage",
        "x-intellij-enum-metadata",
    }
)
_FOR_PROGRAMS = frozenset({"x-carried-out-by", "x-class", "x-on-change", "x-unit"})

_ENTRY = {
    "name": "fleetform",
    "description": "Documents of a fleetform environment: fleets, volumes and runs of GPU machines",
    # `environment.yaml` and `train.yaml` are names that many programs use. The catalogue is for
    # everybody's files, so it claims only names that say fleetform.
    "fileMatch": ["*.fleetform.yaml", "*.fleetform.yml"],
    # Where the catalogue serves the schemas that lie in its own repository.
    "url": "https://json.schemastore.org/fleetform.json",
}


def generate() -> dict[str, str]:
    """The text of each file by its path in `schemas/`."""
    return dict(_generated())


@functools.cache
def _editor_text() -> str:
    twin = for_editors(to_draft07(without(any_schema(), _FOR_PROGRAMS)))
    # On one line: it lies in every environment's history, and only programs read it there.
    text = json.dumps(shared(twin, "definitions"), ensure_ascii=False, separators=(",", ":"))
    return f"{text}\n"


def editor_files() -> dict[str, str]:
    """What an environment needs beside it for its editors: one schema, of any document."""
    return {ALL_KINDS: _editor_text()}


@functools.cache
def _generated() -> Mapping[str, str]:
    schemas = {f"{kind}.json": kind_schema(kind) for kind in models.MODELS}
    schemas[ALL_KINDS] = any_schema()
    files = {name: _text(_for_programs(schema)) for name, schema in schemas.items()}
    files[f"{EDITORS}/{ALL_KINDS}"] = _editor_text()
    files[CATALOG_ENTRY] = _text(_ENTRY)
    return dict(sorted(files.items()))


def _for_programs(schema: Schema) -> Schema:
    bare = without(schema, _FOR_EDITORS)
    assert isinstance(bare, dict)
    return shared(bare, "$defs")


def _text(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"


def stale(folder: Path) -> list[str]:
    """Names of files in `folder` that are missing, or not what `generate` says."""
    return [name for name, text in generate().items() if _read(folder / name) != text]


def write(folder: Path) -> None:
    """Put the files into `folder`; those that are current keep their time."""
    for name in stale(folder):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generate()[name], encoding="utf-8")


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
