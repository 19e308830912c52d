"""
Check that documents declare each name once, and mention what is declared.

Of two documents that declare one resource it is unknown which is meant. A secret that nothing
mentions is one too many. A tree without resources is reported because planning it would remove
everything, which is seldom meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level, Problem
from fleetform.spec.kinds import BACKEND_TYPES, RESOURCES
from fleetform.spec.names import nearest, split_element
from fleetform.spec.references import Catalogue, Entry, Reference

_DIGITS = re.compile(r"\d+")
# Comparing one name with ten thousand takes a tenth of a second. Beyond so many unknown names,
# it is no slip of a finger.
_SUGGESTIONS_MAX = 50


def check_unknown(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Each unknown name is reported once for each document that says it."""
    suggestions = _SUGGESTIONS_MAX
    known: set[Reference] = set()
    for entry in (*catalogue.entries, *catalogue.unnamed):
        for reference in entry.references:
            if reference in known:
                continue
            if _is_known(reference, catalogue):
                known.add(reference)
            else:
                suggestions -= 1
                yield entry, _unknown(reference, catalogue, is_compared=suggestions >= 0)


def _is_known(reference: Reference, catalogue: Catalogue) -> bool:
    # A backend of a type that there is may be used as it is, with the credentials that the
    # cloud's own tools find.
    return catalogue.is_known(reference.kind, reference.name) or (
        reference.kind == "backend" and reference.name in BACKEND_TYPES
    )


def _unknown(reference: Reference, catalogue: Catalogue, *, is_compared: bool) -> Problem:
    kind, name, field = reference
    parent, identity = split_element(name)
    if identity and is_compared and catalogue.is_known(kind, parent):
        detail = f"The run `{parent}` has no element `{identity}`."
        return Problem(
            "unknown-reference", (field,), detail, _element_advice(name, catalogue), word=name
        )
    detail = f"No document declares the {kind} `{name}`."
    advice = _advice(kind, name, catalogue) if is_compared else "Declare it, or correct the name."
    if RESOURCES[kind].may_be_undeclared and not (
        is_compared and _is_slip(name, catalogue.names(kind))
    ):
        return Problem(
            "undeclared-reference",
            (field,),
            detail,
            f"{advice} Until then, plans block this.",
            level=Level.WARNING,
            word=_word(reference),
        )
    return Problem("unknown-reference", (field,), detail, advice, word=_word(reference))


def _word(reference: Reference) -> str:
    """How the name stands in the field."""
    is_expression = reference.kind == "secret" and reference.field != "grants"
    return f"secrets.{reference.name}" if is_expression else reference.name


def _is_slip(name: str, names: list[str]) -> bool:
    """Whether it is one of these with a letter wrong; `data-2` is another one than `data-1`."""
    close = nearest(name, names, cutoff=0.85)
    return close is not None and _DIGITS.sub("", close) != _DIGITS.sub("", name)


def _advice(kind: str, name: str, catalogue: Catalogue) -> str:
    names = catalogue.names(kind)
    close = nearest(name, names if kind != "backend" else {*names, *BACKEND_TYPES})
    if close:
        return f"Did you mean `{close}`?"
    if kind == "backend":
        return f"Write the type of one, such as `aws`, or add a document with `name: {name}`."
    if catalogue.is_lacking(kind):
        return "It may be declared in a file that could not be read; correct that file first."
    if not names:
        return f"The configuration declares no {kind}; add a document with `type: {'task' if kind == 'run' else kind}`."
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


def check_duplicates(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Reported at each of the documents, so that none of them is planned."""
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


def check_unused(catalogue: Catalogue) -> Iterator[tuple[Entry, Problem]]:
    """Notes, and only where everything else of the tree could be read."""
    secrets = catalogue.whole("secret")
    if not secrets or catalogue.broken:
        return
    used = {
        reference.name
        for entry in catalogue.entries
        for reference in entry.references
        if reference.kind == "secret" and reference.field != "grants"
    }
    if not used.issubset(secrets):
        # What is misspelt, and told already, may be what uses it.
        return
    for entry in catalogue.of_kind("secret"):
        if entry.key.name not in used:
            yield (
                entry,
                Problem(
                    "unused",
                    ("name",),
                    f"No document mentions `${{{{ secrets.{entry.key.name} }}}}`.",
                    "Remove it if it is no longer needed.",
                    level=Level.NOTE,
                ),
            )


def check_empty(catalogue: Catalogue) -> Problem | None:
    """The problem of the tree as a whole, or None."""
    is_lacking = catalogue.has_unread or catalogue.nameless
    if catalogue.entries or catalogue.broken or is_lacking:
        return None
    return Problem(
        "empty-tree",
        (),
        "No document below this environment declares a fleet, a volume or a run.",
        "Add a document, or check that this is the right folder: documents end in `.yaml` or `.yml`.",
        level=Level.WARNING,
    )
