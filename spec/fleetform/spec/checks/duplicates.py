"""Two documents that declare one resource: which of them is meant, nobody can tell."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry


def check_duplicates(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Told at each of the documents, so that none of them is planned."""
    declared: dict[ResourceKey, list[Entry]] = {}
    for entry in catalogue.entries:
        declared.setdefault(entry.key, []).append(entry)
    for entries in declared.values():
        for entry in entries if len(entries) > 1 else ():
            other = entries[0] if entry is not entries[0] else entries[1]
            yield entry, _duplicate(entry, other)


def _duplicate(entry: Entry, other: Entry) -> Problem:
    return Problem(
        "duplicate-name",
        ("name",),
        f"The {entry.key.kind} `{entry.key.name}` is also declared in {other.place.file}:{other.place.line}.",
        "Rename one of the two, or remove it.",
    )
