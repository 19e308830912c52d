"""References to fleets, volumes and runs that no document declares."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.spec.findings import Level, Problem
from fleetform.spec.names import nearest, split_element
from fleetform.spec.references import Catalogue, Entry, Reference, mentioned

# Kinds that may be declared elsewhere or later. A name that is like no other is then no slip:
# the document is right, and its run waits for what it names.
_LATER = frozenset({"volume", "secret"})
# Comparing one name with ten thousand takes a tenth of a second. Beyond so many unknown names,
# it is no slip of a finger.
_SUGGESTIONS_MAX = 50


def check(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Each unknown name is told once for each document that says it."""
    suggestions = _SUGGESTIONS_MAX
    for entry in catalogue.entries:
        told: set[Reference] = set()
        for document in entry.documents:
            for reference in mentioned(document, entry.key.kind):
                if reference not in told and not catalogue.is_known(reference.kind, reference.name):
                    suggestions -= 1
                    yield entry, _problem(reference, catalogue, is_compared=suggestions >= 0)
                told.add(reference)


def _problem(reference: Reference, catalogue: Catalogue, *, is_compared: bool) -> Problem:
    kind, name, field = reference
    parent, identity = split_element(name)
    if identity and is_compared and catalogue.is_known(kind, parent):
        detail = f"The run `{parent}` has no element `{identity}`."
        return Problem(
            "unknown-reference", (field,), detail, _element_advice(name, catalogue), word=name
        )
    detail = f"No document declares the {kind} `{name}`."
    advice = _advice(kind, name, catalogue) if is_compared else "Declare it, or correct the name."
    if kind in _LATER and not (is_compared and nearest(name, catalogue.names(kind))):
        return Problem(
            "undeclared-reference",
            (field,),
            detail,
            f"{advice} Until then, a plan holds this back.",
            level=Level.WARNING,
            word=name,
        )
    return Problem("unknown-reference", (field,), detail, advice, word=name)


def _advice(kind: str, name: str, catalogue: Catalogue) -> str:
    names = catalogue.names(kind)
    close = nearest(name, names)
    if close:
        return f"Did you mean `{close}`?"
    if catalogue.has_unread:
        return "It may stand in a file that could not be read; mend that one first."
    if not names:
        return f"This tree declares no {kind}; add a document with `type: {'task' if kind == 'run' else kind}`."
    listed = ", ".join(f"`{known}`" for known in sorted(names)[:5])
    return f"There is {listed}{' and others' if len(names) > 5 else ''}."


def _element_advice(name: str, catalogue: Catalogue) -> str:
    parent, identity = split_element(name)
    entry = next((entry for entry in catalogue.of_kind("run") if entry.key.name == parent), None)
    # Comparing with a hundred thousand names would take longer than reading the tree.
    candidates = sorted(entry.elements)[:1000] if entry else []
    close = nearest(identity, candidates)
    if close:
        return f"Did you mean `{parent}[{close}]`?"
    return f"Its first is `{parent}[{candidates[0]}]`." if candidates else "It has no elements."
