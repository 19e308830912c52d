"""
Tell whether a change of a document affects other documents.

Two readings of a document that are alike here are the same to all passes after reading: no check between
documents can tell them apart.

A volume with another path affects other volumes only if one of them is at that path, around it or within
it. So that a load need not compare ten thousand documents, the places of all volumes are kept as one text,
a line for each: a search in it tells whether a place is free, and the new line of a volume replaces its
earlier line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleetform.spec.checks.volumes import Place, places
from fleetform.spec.findings import Level
from fleetform.spec.folders import folders_of
from fleetform.spec.tree.cache import Kept

__all__ = [
    "CLAIMS",
    "FACTS",
    "OBSTACLES",
    "OF_THE_TREE",
    "claims_of",
    "has_moved",
    "looks_alike",
    "moved_claims",
]


# The fields of a document that checks between documents read. A change of any other field of a run changes
# nothing for other documents. A test checks that no check reads more.

FACTS: Mapping[str, frozenset[str]] = {
    "run": frozenset(
        {
            "depends_on",
            "files",
            "fleets",
            "max_duration",
            "nodes",
            "queue",
            "resources",
            "volumes",
        }
    ),
    "volume": frozenset({"backend", "claim_name", "fleet", "hosts", "path", "region", "volume_id"}),
}
"""
By kind, top-level fields. Kinds that are not among these are looked at as a whole; there are few
of them in a tree.
"""

CLAIMS: Mapping[str, frozenset[str]] = {
    "volume": frozenset({"claim_name", "path", "region", "volume_id"}),
}
"""
Of these, the fields that say what a document has to itself (`paths.places`), and that no other
check looks at: two documents matter to each other here only where they claim the same or lie
in each other.
"""


OBSTACLES = frozenset({"not-supported", "undeclared-reference"})
"""Problems that a valid document may have: a feature is not supported."""

OF_THE_TREE = frozenset({"too-many-elements", "too-much-text"})
"""Problems that depend on what other documents asked for, and are found again each time."""


def looks_alike(one: Kept, two: Kept, *, has_disputes: bool) -> bool:
    """
    Whether nothing beyond the document itself can depend on which of the two it is, leaving out
    what it has to itself (`CLAIMS`), which is `claims`' to compare.

    Where some documents of the tree have disputes, which are problems with others, their sentences
    name places: so a document must not have moved.
    """
    before, after = one.outcome, two.outcome
    if not (_is_plain(one) and _is_plain(two)):
        return False
    if has_disputes and before.place != after.place:
        return False
    return (
        before.type == after.type
        and before.keys == after.keys
        and [row[:2] for row in before.rows] == [row[:2] for row in after.rows]
        and before.references == after.references
        and before.required == after.required
        and _asked(one) == _asked(two)
        and _facts(one) == _facts(two)
    )


def has_moved(one: Kept, two: Kept) -> bool:
    """Whether the second of two that look alike has something else to itself."""
    claims = CLAIMS.get(one.outcome.keys[0].kind, frozenset())
    return any(
        before.get(name) != after.get(name)
        for before, after in zip(one.outcome.documents, two.outcome.documents, strict=True)
        for name in claims
    )


def _is_plain(kept: Kept) -> bool:
    """It was read, causes no error elsewhere, and has only problems of its own."""
    outcome = kept.outcome
    return (
        outcome.is_read
        and not outcome.is_spoiled
        and outcome.keys[0].kind in FACTS
        and len(kept.findings) == len(outcome.problems)
        and not any(
            problem.level is Level.ERROR or problem.code in OBSTACLES or problem.code in OF_THE_TREE
            for problem in outcome.problems
        )
    )


def _asked(kept: Kept) -> list[Any]:
    """What it names under `files:`; what lies there is its own matter."""
    return [answer[:2] for answer in kept.conditions.files]


def _facts(kept: Kept) -> list[Mapping[str, Any]]:
    kind = kept.outcome.keys[0].kind
    facts = FACTS[kind] - CLAIMS.get(kind, frozenset())
    return [
        {name: value for name, value in document.items() if name in facts}
        for document in kept.outcome.documents
    ]


_END = "\n"
_BETWEEN = "|"


def claims_of(documents: Iterable[Mapping[str, Any]]) -> str | None:
    """The places of volumes; None where the end of a name in one of them is ambiguous."""
    lines = [_line(place) for document in documents for place in places(document)]
    return None if None in lines else "".join((_END, *(line for line in lines if line)))


def moved_claims(
    claims: str | None, before: Mapping[str, Any], after: Mapping[str, Any]
) -> str | None:
    """
    The places of all, with those of one volume as they are now.

    Args:
        claims: Those of before, of volumes of which none is in another's way.
        before: The volume's canonical document at that time.
        after: The one of now.

    Returns:
        None where another volume may be in the way of this one, or it in another's.
    """
    for place in places(before):
        line = _line(place)
        if claims is None or line is None or f"{_END}{line}" not in claims:
            return None
        claims = claims.replace(f"{_END}{line}", _END, 1)
    for place in places(after):
        line = _line(place)
        if claims is None or line is None or not _is_free(place, line, claims):
            return None
        claims += line
    return claims


def _line(place: Place) -> str | None:
    is_plain = not any(mark in part for part in place for mark in (_END, _BETWEEN))
    return f"{_BETWEEN.join(place)}{_END}" if is_plain else None


def _is_free(place: Place, line: str, claims: str) -> bool:
    if f"{_END}{line}" in claims:
        return False
    if place.field != "path":
        return True
    if place.value in {".", "/"}:
        # Around nearly all, and not by how their paths begin.
        return False
    above = f"{_END}path{_BETWEEN}{place.owner}{_BETWEEN}"
    return f"{above}{place.value}/" not in claims and not any(
        f"{above}{folder}{_BETWEEN}" in claims for folder in folders_of(place.value)
    )
