"""Two volumes that are one: what a run writes to the first, another would find in the second."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Volumes at one path of one fleet, and those that register one disk or claim."""
    claimed: dict[tuple[str, ...], Entry] = {}
    for entry in catalogue.of_kind("volume"):
        document = entry.documents[0]
        for owner, field, where in _CLAIMS:
            if owner not in document or field not in document:
                continue
            place = (field, document[owner], document.get("region", ""), document[field])
            first = claimed.setdefault(place, entry)
            # One that is declared twice is told as a duplicate.
            if first is not entry and first.key != entry.key:
                yield entry, _problem(field, where, first)


_CLAIMS = (
    ("fleet", "path", "lies at the same path of the same fleet"),
    ("backend", "volume_id", "is the same disk"),
    ("backend", "claim_name", "is the same claim"),
)
"""Whose it is, the field that says which one, and what it is to have it twice."""


def _problem(field: str, where: str, first: Entry) -> Problem:
    return Problem(
        "path-claimed-twice",
        (field,),
        f"The volume `{first.key.name}` ({first.place.file}:{first.place.line}) {where}; deleting"
        " one would delete the other's data.",
        "Give one of them another path, or mount the same volume in both runs."
        if field == "path"
        else "Remove one of the two, and mount the other in both runs.",
    )
