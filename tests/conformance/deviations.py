"""
The table of deviations from dstack, as values.

It is data in a separate file, because the tests check it and a page of the documentation is
generated from it.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent

REFUSED = "refused"
"""In place of a value: the document has an error."""

DOCUMENTS_OF_DSTACK = 277
"""The documents in the examples and the documentation of dstack's release; a test counts them."""


class Row(NamedTuple):
    """The result of dstack for one value of one file; `theirs` may be `REFUSED`."""

    file: str
    value: Any
    theirs: Any

    @property
    def key(self) -> tuple[str, str]:
        """The row's own, as text: values of YAML have no order and no hash."""
        return self.file, json.dumps(self.value, sort_keys=True)


class Deviation(NamedTuple):
    """One row that fleetform reads differently; `here` may be `REFUSED`."""

    file: str
    value: Any
    here: Any
    why: str

    @property
    def key(self) -> tuple[str, str]:
        return self.file, json.dumps(self.value, sort_keys=True)


class Shown(NamedTuple):
    """
    A document that dstack and fleetform read differently.

    `dstack` is `accepted` or `refused`; `here` is part of a finding, or `LOADS`.
    """

    document: dict[str, Any]
    dstack: str
    here: str
    why: str

    @property
    def whole(self) -> dict[str, Any]:
        """The document with all that its type needs."""
        merged = {**BASES[self.document["type"]], **self.document}
        return {
            name: value
            for name, value in merged.items()
            # A null that takes nothing away is a value that is shown.
            if value is not None or name == "name" or name not in BASES[self.document["type"]]
        }


LOADS = "loads"
"""Instead of a finding: there is no error."""

BASES: Mapping[str, Mapping[str, Any]] = {
    "task": {"name": "train", "commands": ["true"]},
    "dev-environment": {"name": "desk"},
    "service": {"name": "chat", "commands": ["true"], "port": 8000},
    "fleet": {"name": "lab", "nodes": 1},
    "volume": {"name": "data", "backend": "aws", "region": "eu-west-1", "size": "100GB"},
    "gateway": {"name": "public", "backend": "aws", "region": "eu-west-1"},
}
"""By type: the fields that a document shown does not repeat."""


def rows() -> list[Row]:
    """All rows there are, by file and line."""
    return [
        Row(path.stem, row["input"], row["output"] if row["ok"] else REFUSED)
        for path in sorted((FOLDER / "data").glob("*.jsonl"))
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())
    ]


def deviations() -> list[Deviation]:
    """In the order of the table."""
    return [
        Deviation(row["file"], row["input"], row.get("here", REFUSED), group["why"])
        for group in _table()["values"]
        for row in group["rows"]
    ]


def documents() -> list[Shown]:
    """In the order of the table."""
    return [
        Shown(one["document"], one["dstack"], one["here"], group["why"])
        for group in _table()["documents"]
        for one in group["shown"]
    ]


@functools.cache
def _table() -> Mapping[str, Any]:
    text = (FOLDER / "deviations.yaml").read_text(encoding="utf-8")
    # libyaml's: each worker of a run reads the table, and in Python that takes a second.
    table: Mapping[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return table
