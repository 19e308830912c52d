"""
What refers to what: fleets, volumes and runs that a document names.

The catalogue is the tree as the checks see it: every document that could be read, and the
names of those that could not, so that one mistake is told once and not again by all who refer
to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Place
from fleetform.spec.interpolate import MARK
from fleetform.spec.kinds.base import Document
from fleetform.spec.names import split_element


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One document that could be read, if need be without its fields that could not.

    Attributes:
        number: Its position in the tree, in order of file and line.
        documents: Its canonical forms: one, unless a sweep's parameters stand in fields that
            refer to something or ask for something.
        elements: Identities of its elements; empty for what is neither array nor sweep.
    """

    number: int
    key: ResourceKey
    type: str
    model: Document
    place: Place
    documents: Sequence[Mapping[str, Any]] = ()
    elements: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """
    Attributes:
        entries: In order of the tree.
        broken: Keys of documents with an error, as far as they can be told.
        has_unread: Some file or document does not even say what it declares, so that what is
            missing may be in there.
    """

    entries: Sequence[Entry]
    broken: frozenset[ResourceKey] = frozenset()
    has_unread: bool = False
    by_key: Mapping[ResourceKey, Entry] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        broken: Iterable[ResourceKey] = (),
        *,
        has_unread: bool = False,
    ) -> Catalogue:
        ordered = tuple(entries)
        by_key: dict[ResourceKey, Entry] = {}
        for entry in ordered:
            by_key.setdefault(entry.key, entry)
        return cls(ordered, frozenset(broken), has_unread, by_key)

    def of_kind(self, kind: str) -> list[Entry]:
        return [entry for entry in self.entries if entry.key.kind == kind]

    def names(self, kind: str) -> list[str]:
        """What may be referred to, sorted. A document of unknown kind is nothing to suggest."""
        return sorted(key.name for key in self.by_key if key.kind == kind)

    def is_known(self, kind: str, name: str) -> bool:
        """Whether the name is declared, as a document or as an element of one."""
        parent, identity = split_element(name)
        key = ResourceKey(kind, parent)
        if key in self.broken:
            return True
        entry = self.by_key.get(key)
        return entry is not None and (not identity or identity in entry.elements)


class Reference(NamedTuple):
    """A name that a document mentions: of what kind, and in which top-level field."""

    kind: str
    name: str
    field: str


def mentioned(document: Mapping[str, Any], kind: str) -> Iterator[Reference]:
    """Everything that a canonical document refers to, in the order of its fields."""
    if kind == "volume" and "fleet" in document:
        yield Reference("fleet", document["fleet"], "fleet")
    if kind != "run":
        return
    yield from _placing(document)
    for mount in document.get("volumes", ()):
        if "name" in mount and not mount.get("instance"):
            names = mount["name"] if isinstance(mount["name"], list) else [mount["name"]]
            # What an expression comes to is known when the run starts.
            yield from (Reference("volume", name, "volumes") for name in names if MARK not in name)
    for dependency in document.get("depends_on", {}).get("runs", ()):
        yield Reference("run", dependency["run"], "depends_on")


def _placing(document: Mapping[str, Any]) -> Iterator[Reference]:
    """Fleets, and what else says where a run goes; another project's is not in this tree."""
    for name in document.get("fleets", ()):
        if "/" not in name:
            yield Reference("fleet", name, "fleets")
    for one in document.get("instances", ()):
        if "fleet" in one and "/" not in one["fleet"]:
            yield Reference("fleet", one["fleet"], "instances")


def required(document: Mapping[str, Any], kind: str) -> tuple[ResourceKey, ...]:
    """Keys of what must exist before the resource does, sorted; runs it waits for are not."""
    return tuple(
        sorted(
            {
                ResourceKey(one.kind, one.name)
                for one in mentioned(document, kind)
                if one.kind != "run"
            }
        )
    )


class Upstream:
    """
    Names of the runs that a run waits for, with elements in place of their sweep.

    The elements' names of one sweep are one tuple, shared by all who wait for it: ten thousand
    runs that wait for ten thousand others would hold a hundred million names otherwise.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._names: dict[str, tuple[str, ...]] = {}
        self._joined: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, document: Mapping[str, Any], identity: str = "") -> tuple[str, ...]:
        """In order of name; `identity` is the waiting element's own."""
        said = document.get("depends_on")
        if not said:
            return ()
        each = [
            f"{entry['run']}[{identity}]" if entry.get("each") and identity else ""
            for entry in said["runs"]
        ]
        shared = tuple(
            entry["run"] for entry, own in zip(said["runs"], each, strict=True) if not own
        )
        own = [name for name in each if name]
        return tuple(sorted({*own, *self._all_of(shared)})) if own else self._all_of(shared)

    def _all_of(self, runs: tuple[str, ...]) -> tuple[str, ...]:
        if len(runs) == 1:
            return self._elements(runs[0])
        if runs not in self._joined:
            self._joined[runs] = tuple(
                sorted({name for run in runs for name in self._elements(run)})
            )
        return self._joined[runs]

    def _elements(self, run: str) -> tuple[str, ...]:
        if run not in self._names:
            entry = self._catalogue.by_key.get(ResourceKey("run", run))
            elements = entry.elements if entry else ()
            self._names[run] = tuple(sorted(f"{run}[{identity}]" for identity in elements)) or (
                run,
            )
        return self._names[run]
