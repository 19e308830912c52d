"""
Two volumes that are one: what a run writes to the first, another would find in the second.

One in the other's directory is as bad: it would go, be put aside and be taken in with that one.
What links make of two paths is seen where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.folders import folders_of
from fleetform.spec.references import Catalogue, Entry


class Place(NamedTuple):
    """
    What a volume has to itself.

    Attributes:
        field: The one that says what.
        owner: The fleet or backend that it is of.
        value: What the field says.
    """

    field: str
    owner: str
    value: str
    region: str


def places(document: Mapping[str, Any]) -> Iterator[Place]:
    """What a volume claims, by its canonical document."""
    for owner, field, _ in _CLAIMS:
        if owner in document and field in document:
            yield Place(field, document[owner], document[field], document.get("region", ""))


def check_paths(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Volumes at one path of one fleet or around one, and those that register one disk or claim."""
    claimed: dict[Place, Entry] = {}
    for entry in catalogue.of_kind("volume"):
        for place in places(entry.documents[0]):
            first = claimed.setdefault(place, entry)
            # One that is declared twice is told as a duplicate.
            if first is not entry and first.key != entry.key:
                yield entry, _path_problem(place.field, first)
    yield from _nested_volumes(
        {
            (place.owner, place.value): entry
            for place, entry in claimed.items()
            if place.field == "path"
        }
    )


def _nested_volumes(lying: dict[tuple[str, str], Entry]) -> Iterator[tuple[Entry, Problem]]:
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
                    f"It is inside the directory of the volume `{around.key.name}`"
                    f" ({around.place.file}:{around.place.line}) of the same fleet; deleting or moving that volume would also delete or move the data of this one.",
                    "Give it a path outside of that directory.",
                ),
            )


_CLAIMS = (
    ("fleet", "path", "has the same path on the same fleet"),
    ("backend", "volume_id", "is the same disk"),
    ("backend", "claim_name", "is the same claim"),
)
"""Whose it is, the field that says which one, and what it is to have it twice."""


def _path_problem(field: str, first: Entry) -> Problem:
    where = next(where for _, one, where in _CLAIMS if one == field)
    return Problem(
        "path-claimed-twice",
        (field,),
        f"The volume `{first.key.name}` ({first.place.file}:{first.place.line}) {where}; deleting"
        " one would delete the other's data.",
        "Give one of them another path, or mount the same volume in both runs."
        if field == "path"
        else "Remove one of the two, and mount the other in both runs.",
    )
