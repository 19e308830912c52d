"""
What volumes have to themselves, as one text: whether a place is free is found in it by a search.

A volume with another path matters to the others only where one of them lies there, around it or
within. So that a load need not look at ten thousand documents for that, the places of all are
kept beside them, a line for each, and the changed one's line takes the place of its earlier.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fleetform.spec.checks.paths import Place, places
from fleetform.spec.folders import folders_of

__all__ = ["claims_of", "moved_claims"]

_END = "\n"
_BETWEEN = "|"


def claims_of(documents: Iterable[Mapping[str, Any]]) -> str | None:
    """The places of volumes; None where a name in one of them cannot be told from its end."""
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
