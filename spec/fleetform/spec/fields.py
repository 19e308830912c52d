"""
What each field is: its class, what a change of it does, what carries it out, its unit.

The one table behind the diff's wording, the digest of an execution, the schema's `x-on-change`,
the reference, and the note for a field that nothing carries out yet. A field is named by its
path in the document, `resources.gpu.count`; a path that has no row of its own is answered by the
nearest row above it, so `env.LR` is `env`.

The facts stand at the fields of the models. They are read from `field_table`, which is generated
from the models, since a plan that changes nothing never imports those: that is a third of its time.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from fleetform.spec.field_facts import Default, FieldClass, OnChange, Row
from fleetform.spec.field_table import KIND_OF_TYPE, ROWS
from fleetform.spec.secrecy import names_secret

__all__ = [
    "DEFAULTS",
    "EXECUTION_FIELDS",
    "FLEET_PROVIDERS",
    "KIND_OF_TYPE",
    "ROWS",
    "FieldClass",
    "OnChange",
    "Row",
    "is_sensitive",
    "row",
    "sensitive_tops",
    "unsupported",
]

DEFAULTS: Mapping[str, Mapping[str, Default]] = {
    kind: {path: facts.default for path, facts in rows.items() if facts.default is not None}
    for kind, rows in ROWS.items()
}
"""What not saying a field amounts to, by kind and path."""

_PROVIDERS = "providers."

FLEET_PROVIDERS: Mapping[str, str] = {
    path: facts.supported_by.removeprefix(_PROVIDERS)
    for path, facts in ROWS["fleet"].items()
    if facts.supported_by.startswith(_PROVIDERS) and "." not in path
}
"""The provider of each field that says where the hosts of a fleet come from, by its name in the registry."""

# A ledger may hold a document of another version with a field that this one has never heard of.
# Taking it for an execution field shows the change at its worst, and hides nothing.
_UNKNOWN = Row(FieldClass.EXECUTION, OnChange.RERUN, "")

# `files[0].sha256`, `volumes.1.path`: positions in lists say nothing about the field.
_POSITION = re.compile(r"\[[^\]]*\]|(?<=\.)\d+(?=\.|$)")


@functools.lru_cache(maxsize=4096)
def row(kind: str, path: str) -> Row:
    """
    The facts of the field at `path`, from the nearest row at or above it.

    Args:
        kind: A resource's kind, or a document's `type:`.
        path: Dotted; positions in lists are passed over.
    """
    rows = ROWS.get(KIND_OF_TYPE.get(kind, kind), {})
    parts = [part for part in _POSITION.sub("", path).split(".") if part]
    for length in range(len(parts), 0, -1):
        found = rows.get(".".join(parts[:length]))
        if found is not None:
            return found
    return _UNKNOWN


def unsupported(kind: str) -> Mapping[str, Row]:
    """Fields that nothing carries out yet, by path; a part of one of them is not named again."""
    return _unsupported(KIND_OF_TYPE.get(kind, kind))


@functools.cache
def _unsupported(kind: str) -> Mapping[str, Row]:
    found: dict[str, Row] = {}
    for path, facts in sorted(ROWS.get(kind, {}).items()):
        above = (path[:end] for end, letter in enumerate(path) if letter == ".")
        if not facts.supported_by and not any(one in found for one in above):
            found[path] = facts
    return found


@functools.lru_cache(maxsize=4096)
def is_sensitive(kind: str, path: str) -> bool:
    """
    Tell whether the value at `path` is never shown.

    A variable of `env` and a parameter of `matrix` are when their names say so. A password within an address is the value's to
    tell, not the field's.
    """
    top, _, inside = path.partition(".")
    if top in {"env", "matrix"} and inside:
        return names_secret(inside)
    return row(kind, path).sensitive


@functools.cache
def sensitive_tops(kind: str) -> frozenset[str]:
    """Top-level fields in which something may be sensitive: all others need not be looked into."""
    rows = ROWS.get(KIND_OF_TYPE.get(kind, kind), {})
    tops = {path.partition(".")[0] for path, facts in rows.items() if facts.sensitive}
    return frozenset(tops | (rows.keys() & {"env", "matrix"}))


EXECUTION_FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(
        path
        for path, facts in rows.items()
        if facts.field_class is FieldClass.EXECUTION
        and facts.on_change is not OnChange.IDENTITY
        and "." not in path
    )
    for kind, rows in ROWS.items()
}
"""Top-level canonical fields that make up an execution's digest, by kind."""
