"""
The files of `schemas/`, and the one that an environment keeps for its editors.

    schemas/fleetform.json, task.json, …    draft 2020-12: any document, and one of each type
    schemas/draft-07/…                      the same in the draft that most editors read
    schemas/schemastore/catalog-entry.json  what the public catalogue of schemas would be given
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetform.spec.schema import models
from fleetform.spec.schema.draft07 import for_editors, to_draft07
from fleetform.spec.schema.whole import any_schema, kind_schema

ALL_KINDS = "fleetform.json"
"""The schema of any document."""

EDITORS = "draft-07"
"""The folder of the twins for editors."""

CATALOG_ENTRY = "schemastore/catalog-entry.json"

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


def editor_files() -> dict[str, str]:
    """What an environment needs beside it for its editors: one schema, of any document."""
    # On one line: it lies in every environment's history, and only programs read it there.
    text = json.dumps(_twin(any_schema()), ensure_ascii=False, separators=(",", ":"))
    return {ALL_KINDS: f"{text}\n"}


@functools.cache
def _generated() -> Mapping[str, str]:
    schemas = {f"{kind}.json": kind_schema(kind) for kind in models.MODELS}
    schemas[ALL_KINDS] = any_schema()
    twins = {f"{EDITORS}/{name}": _twin(schema) for name, schema in schemas.items()}
    files = {**schemas, **twins, CATALOG_ENTRY: _ENTRY}
    return {name: _text(value) for name, value in sorted(files.items())}


def _twin(schema: Mapping[str, Any]) -> Any:
    return for_editors(to_draft07(schema))


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


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
