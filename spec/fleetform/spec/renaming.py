"""
Canonical documents in which something else is called by another name.

A name in a document is a label: that what it names was renamed makes it no other document. So
documents that were written under earlier names are read, and kept, with the new ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetform.spec.canonical import digest
from fleetform.spec.desired import ResourceKey
from fleetform.spec.fields import EXECUTION_FIELDS
from fleetform.spec.kinds import NAMING
from fleetform.spec.names import split_element

__all__ = ["Renames", "digests_of", "rename_references"]


class Renames:
    """
    Earlier names and what follows them, by kind; a sweep's stand for those of its elements.

    An element that is renamed by itself is not called as the others of its sweep are.
    """

    def __init__(self, pairs: Mapping[ResourceKey, ResourceKey]) -> None:
        self._pairs = dict(pairs)
        # As they stand in JSON: what contains none of these mentions nothing that was renamed.
        self._marks = tuple(f'"{key.name}' for key in pairs)

    def __bool__(self) -> bool:
        return bool(self._pairs)

    def of(self, key: ResourceKey) -> ResourceKey:
        """The name that is good now; the same for what was not renamed."""
        found = self._pairs.get(key)
        if found is not None:
            return found
        parent, element = split_element(key.name)
        after = self._pairs.get(ResourceKey(key.kind, parent)) if element else None
        return key if after is None else ResourceKey(key.kind, f"{after.name}[{element}]")

    def name(self, kind: str, name: str) -> str:
        return self.of(ResourceKey(kind, name)).name

    def may_be_in(self, text: str) -> bool:
        """Tell whether a document's JSON text may mention something of these; cheap."""
        return any(mark in text for mark in self._marks)


def rename_references(
    kind: str, document: Mapping[str, Any], renames: Renames
) -> Mapping[str, Any]:
    """The document with new names in the canonical order; itself where none occurs in it."""
    changed: dict[str, Any] = {}
    for first, steps, target in NAMING.get(kind, ()):
        if first in document:
            changed[first] = _named_at(document[first], steps, target, renames)
    if kind == "run":
        changed.update(_of_run(document, renames))
    changed = {name: value for name, value in changed.items() if value != document[name]}
    return {**document, **changed} if changed else document


def _named_at(value: Any, steps: Sequence[str], kind: str, renames: Renames) -> Any:
    """The value with new names where `steps` lead to names; itself where none was renamed."""
    if isinstance(value, list | tuple):
        items = [_named_at(item, steps, kind, renames) for item in value]
        if items == list(value):
            return value
        # A canonical list of names is sorted.
        return items if steps else sorted(items)
    if steps:
        first, *rest = steps
        if not isinstance(value, Mapping) or first not in value:
            return value
        return {**value, first: _named_at(value[first], rest, kind, renames)}
    return renames.name(kind, value) if isinstance(value, str) else value


def _of_run(document: Mapping[str, Any], renames: Renames) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    if "volumes" in document:
        changed["volumes"] = [_mount(mount, renames) for mount in document["volumes"]]
    if "depends_on" in document:
        said = document["depends_on"]
        runs = [{**one, "run": renames.name("run", one["run"])} for one in said.get("runs", ())]
        # In the order that `kinds.run_policies` writes them.
        runs.sort(key=lambda one: (one["run"], one.get("when", ""), one.get("each", False)))
        changed["depends_on"] = {**said, "runs": runs}
    return changed


def _mount(mount: Mapping[str, Any], renames: Renames) -> Mapping[str, Any]:
    # A directory of the host has no name.
    name = mount.get("name")
    if name is None or mount.get("instance"):
        return mount
    if isinstance(name, str):
        return {**mount, "name": renames.name("volume", name)}
    return {**mount, "name": [renames.name("volume", one) for one in name]}


def digests_of(kind: str, document: Mapping[str, Any]) -> tuple[str, str]:
    """Digest of a canonical document and of its execution, as reading a tree gives them."""
    whole = digest(document)
    if kind != "run":
        return whole, whole
    execution = EXECUTION_FIELDS["run"]
    return whole, digest({name: document[name] for name in document if name in execution})
