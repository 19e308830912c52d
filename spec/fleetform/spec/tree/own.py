"""
What a document says itself, apart from all that is inherited: the digest that tells a rerun from
`stale`.

A finished run is run again when its own document changed, and only marked when a base, a patch,
a profile or a value of the environment did: one line of those may reach a thousand runs. So the
digest covers the fields that the document itself says, in their canonical form (another spelling
is no change), with its files. What is only inherited is not in it, and a document of a base says
nothing of its own.

With nothing inherited this is the digest of the whole document, so that an environment may begin
to patch and nothing runs again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fleetform.spec import interpolate
from fleetform.spec.canonical import digest
from fleetform.spec.findings import Level
from fleetform.spec.nodes import Node, plain
from fleetform.spec.overlay.profiles import FIELD as PROFILE
from fleetform.spec.tree.elements import Reading

__all__ = ["names_values", "own_digests"]

# What elements are made from. They are those of the whole document, or there would be none to
# compare with; the elements' names tell the rest.
_MAKES_ELEMENTS = frozenset({"name", "array", "matrix", "key"})
# What an element has of its own in canonical form.
_PARAMETERS = frozenset({"index", "matrix"})
_NAMESPACE = "values"


def own_digests(
    own: Node | None,
    value: Mapping[str, Any],
    reading: Reading,
    read: Callable[[Mapping[str, Any]], Reading],
) -> dict[str, str]:
    """
    The digest of what the document itself says, for each element by its identity.

    Args:
        own: What the environment's own tree says of it; None: nothing.
        value: The whole document, with what is inherited.
        reading: That document, read.
        read: Reads another value in its place.
    """
    said = _said(own)
    kept = {name: item for name, item in said.items() if name == PROFILE or names_values(item)}
    typed = {name: item for name, item in said.items() if name not in kept}
    again = read(_own_value(value, typed)) if typed else reading
    if again.model is None or any(one.level is Level.ERROR for one in again.problems):
        # By itself it is no document: a profile has the other half of one of its fields. As it
        # is written, then; its files by their content all the same.
        files = {"files": reading.shared["files"]} if "files" in reading.shared else {}
        kept, typed, again = {**said, **_only(files, said)}, {}, reading
    # What a document comes to beside its fields, such as the limit in `array: 1-9%2`.
    names = {*typed, *_PARAMETERS, *(again.shared.keys() - value.keys() if typed else ())}
    shared = {**_only(again.shared, names), **kept}
    return {
        element.identity: digest({**shared, **_only(fields, names)})
        for element, fields in again.elements
    }


def names_values(value: Any) -> bool:
    """Whether a value of the environment is named anywhere in a JSON value."""
    found = interpolate.references(interpolate.compile_value(value))
    return any(namespace == _NAMESPACE for _, (namespace, _) in found)


def _said(own: Node | None) -> dict[str, Any]:
    said = plain(own) if own is not None else {}
    return {
        name: item
        for name, item in said.items()
        # A null says that something is not there, which canonical forms do not.
        if name not in _MAKES_ELEMENTS and item is not None
    }


def _own_value(value: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """
    A document that can be read: what it lacks is inherited, and left out of the digest.

    But for what reaches into fields of its own, variables, and what costs: files.
    """
    inherited = {name: item for name, item in value.items() if name not in {"env", "files"}}
    return {**inherited, **typed}


def _only(fields: Mapping[str, Any], names: Any) -> dict[str, Any]:
    return {name: item for name, item in fields.items() if name in names}
