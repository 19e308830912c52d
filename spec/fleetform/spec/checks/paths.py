"""
Two volumes that are one: what a run writes to the first, another would find in the second.

One in the other's directory is as bad: it would go, be put aside and be taken in with that one.
What links make of two paths is seen where they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Problem
from fleetform.spec.folders import folders_of
from fleetform.spec.references import Catalogue, Entry


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Volumes at one path of one fleet or around one, and those that register one disk or claim."""
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
    yield from _nested(
        {(place[1], place[3]): entry for place, entry in claimed.items() if place[0] == "path"}
    )


def _nested(lying: dict[tuple[str, str], Entry]) -> Iterator[tuple[Entry, Problem]]:
    """`lying` has the first volume at each path of each fleet."""
    for (fleet, path), entry in lying.items():
        around = next(
            (lying[fleet, one] for one in folders_of(path) if (fleet, one) in lying), None
        )
        if around is not None:
            yield (
                entry,
                Problem(
                    "path-inside-another",
                    ("path",),
                    f"It lies in the directory of the volume `{around.key.name}`"
                    f" ({around.place.file}:{around.place.line}) of the same fleet; deleting or"
                    " moving that one would take this one's data along.",
                    "Give it a path beside that one.",
                ),
            )


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
