"""
What a document with errors refers to, read from its text.

A field with one wrong entry has no canonical form, and a document with a wrong name declares nothing.
What else they name is looked for all the same, so that one look shows all mistakes of a document.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.names import EXPRESSION_MARK, name_problem, split_element
from fleetform.spec.references import Reference

__all__ = ["names_in", "waiting"]

_LISTS = {"fleets": "fleet", "queue": "queue", "volumes": "volume", "depends_on": "run"}
"""Fields of a run that may hold names beside a wrong entry, and the kind of what they name."""


def names_in(value: Mapping[str, Any], known: Mapping[str, Any]) -> Iterator[Reference]:
    """
    The names in fields of a run that have no canonical form.

    Args:
        value: The document as it is written.
        known: Its canonical form as far as it has one: these fields are read from there.
    """
    for field, kind in _LISTS.items():
        if field not in value or field in known:
            continue
        for text in _texts(value[field]):
            name = text
            if field == "volumes":
                name, colon, _ = text.partition(":")
                if not colon:
                    continue  # A path of the host.
            # A name that is wrong is told as such.
            if EXPRESSION_MARK not in name and name_problem(split_element(name)[0]) is None:
                yield Reference(kind, name, field)


def waiting(value: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    """
    The document as the search for cycles sees it: its name, and what it waits for, right or wrong.

    Wrong names lead to each other like right ones, and the cycle remains when they are corrected.
    """
    name = value.get("name")
    if not isinstance(name, str) or EXPRESSION_MARK in name:
        return known
    if "depends_on" in known:
        return {**known, "name": name}
    runs = [{"run": text} for text in _texts(value.get("depends_on"))]
    return {**known, "name": name, **({"depends_on": {"runs": runs}} if runs else {})}


def _texts(value: Any) -> Iterator[str]:
    """Names that stand in a value: alone, in a list, or under the key that holds them."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        for key in ("run", "runs", "name"):
            yield from _texts(value.get(key))
