"""
The table of deviations from dstack, as values.

It is data and stands in a file of its own, because the tests hold us to it and a page of the
documentation is made from it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

FOLDER = Path(__file__).parent

REFUSED = "refused"
"""In place of a value: the document has an error."""


class Row(NamedTuple):
    """What dstack makes of one value of one file; `theirs` may be `REFUSED`."""

    file: str
    value: Any
    theirs: Any

    @property
    def key(self) -> tuple[str, str]:
        """The row's own, as text: values of YAML have no order and no hash."""
        return self.file, json.dumps(self.value, sort_keys=True)


class Deviation(NamedTuple):
    """One row that fleetform reads otherwise; `here` may be `REFUSED`."""

    file: str
    value: Any
    here: Any
    why: str

    @property
    def key(self) -> tuple[str, str]:
        return self.file, json.dumps(self.value, sort_keys=True)


class General(NamedTuple):
    """A deviation that no row shows."""

    what: str
    why: str


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


def general() -> Iterator[General]:
    """In the order of the table."""
    return (General(**one) for one in _table()["general"])


def _table() -> Mapping[str, Any]:
    text = (FOLDER / "deviations.yaml").read_text(encoding="utf-8")
    table: Mapping[str, Any] = yaml.safe_load(text)
    return table
