"""
Canonical documents as loading a tree would make them, and what they declare.

Everything after that is the product's own. A declaration is made once and kept: most edits of a
tree leave most of its documents as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fleetform.spec.canonical import digest
from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.fields import EXECUTION_FIELDS

__all__ = ["declare_element", "declare_fleet", "declare_run", "declare_volume"]

CPU_MILLICORES = 500
"""What each run asks for; a host has place for eight."""

HOST_CPU_MILLICORES = 4000
HOST_MEMORY_BYTES = 1 << 34


def declare_fleet(name: str, nodes: int, options: Mapping[str, Any]) -> Declared:
    document = {
        "type": "fleet",
        "nodes": {"min": nodes, "target": nodes, "max": nodes},
        "local": {"cpu": HOST_CPU_MILLICORES, "memory": HOST_MEMORY_BYTES},
        **options,
    }
    return _declare("fleet", "fleet", name, document)


def declare_volume(name: str, fleet: str, path: str, options: Mapping[str, Any]) -> Declared:
    document = {"type": "volume", "fleet": fleet, "path": path, **options}
    return _declare("volume", "volume", name, document)


def declare_run(
    name: str, own: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
) -> Declared:
    """`inherited` is what a base adds to the run's own document."""
    own = {
        "type": "task",
        "resources": {"cpu": {"min": CPU_MILLICORES, "max": CPU_MILLICORES}},
        **own,
    }
    return _declare("run", "task", name, {**own, **(inherited or {})}, own=own)


def declare_element(sweep: str, lr: str, own: Mapping[str, Any]) -> Declared:
    element = f"lr={lr}"
    document = {
        "type": "task",
        "resources": {"cpu": {"min": CPU_MILLICORES, "max": CPU_MILLICORES}},
        "matrix": {"lr": lr},
        **own,
    }
    return _declare("run", "task", f"{sweep}[{element}]", document, parent=sweep, element=element)


def _declare(
    kind: str,
    type_: str,
    name: str,
    document: Mapping[str, Any],
    *,
    own: Mapping[str, Any] | None = None,
    parent: str = "",
    element: str = "",
) -> Declared:
    # What somebody has declared once they declare commit after commit.
    known = (name, repr(document), own is None or len(own) == len(document))
    declared = _KNOWN.get(known)
    if declared is None:
        if len(_KNOWN) >= _KNOWN_MAX:
            _KNOWN.clear()
        declared = _make(kind, type_, name, document, own=own, parent=parent, element=element)
        _KNOWN[known] = declared
    return declared


_KNOWN: dict[tuple[str, str, bool], Declared] = {}
_KNOWN_MAX = 20_000


def _make(
    kind: str,
    type_: str,
    name: str,
    document: Mapping[str, Any],
    *,
    own: Mapping[str, Any] | None = None,
    parent: str = "",
    element: str = "",
) -> Declared:
    whole = digest(dict(document))
    execution = whole
    if kind == "run":
        execution = digest(
            {field: document[field] for field in document if field in EXECUTION_FIELDS[kind]}
        )
    return Declared(
        key=ResourceKey(kind, name),
        type=type_,
        document=document,
        digest=whole,
        execution_digest=execution,
        own_digest=whole if own is None or len(own) == len(document) else digest(dict(own)),
        parent=parent,
        element=element,
        references=tuple(_references(kind, document)),
        upstream=tuple(one["run"] for one in document.get("depends_on", {}).get("runs", ())),
    )


def _references(kind: str, document: Mapping[str, Any]) -> Iterator[ResourceKey]:
    if kind == "volume":
        yield ResourceKey("fleet", document["fleet"])
    for name in document.get("fleets", ()):
        yield ResourceKey("fleet", name)
    if kind == "run":
        for mount in document.get("volumes", ()):
            yield ResourceKey("volume", mount["name"])
