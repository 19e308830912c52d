"""`each: true` waits element for element, so both sides need the same elements."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Problem
from fleetform.spec.references import Catalogue, Entry


def check_elements(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Elements that have no partner, with one of them named."""
    for entry in catalogue.of_kind("run"):
        if entry.key in catalogue.broken:
            continue
        told: set[str] = set()
        for document in entry.documents:
            for dependency in document.get("depends_on", {}).get("runs", ()):
                name = dependency["run"]
                other = catalogue.by_key.get(ResourceKey("run", name))
                if not dependency.get("each") or other is None or name in told:
                    continue
                if other.key in catalogue.broken:
                    continue
                told.add(name)
                detail = _mismatch(entry, other)
                if detail:
                    yield entry, _element_problem(name, detail)


def _mismatch(entry: Entry, other: Entry) -> str:
    """Why the two cannot be matched; empty when they can."""
    for one in (entry, other):
        if not one.elements:
            return f"`{one.key.name}` is one run and has no elements."
    lacking = sorted(entry.elements - other.elements)
    if lacking:
        return f"`{entry.key.name}[{lacking[0]}]` would wait for the element `{other.key.name}[{lacking[0]}]`, which is not declared."
    extra = sorted(other.elements - entry.elements)
    if extra:
        return f"Nothing would wait for `{other.key.name}[{extra[0]}]`."
    return ""


def _element_problem(name: str, detail: str) -> Problem:
    return Problem(
        "element-mismatch",
        ("depends_on",),
        detail,
        f"Give both the same elements, or wait for all of `{name}` without `each`.",
        word=name,
    )
