"""
What refers to what: fleets, volumes, runs, secrets and all else that a document names.

The catalogue is the tree as the checks see it: every document that could be read, and the
names of those that could not, so that one mistake is told once and not again by all who refer
to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Place
from fleetform.spec.kinds import CREATED, NAMING
from fleetform.spec.names import EXPRESSION_MARK, split_element


@dataclass(frozen=True, slots=True)
class Entry:
    """
    One document that could be read, if need be without its fields that could not.

    Attributes:
        number: Its position in the tree, in order of file and line.
        documents: Its canonical forms: one, unless a sweep's parameters stand in fields that
            refer to something or ask for something.
        elements: Identities of its elements; empty for what is neither array nor sweep.
        references: What its documents mention, each once.
        wrong: Top-level fields with an error; empty stands for the document as a whole.
    """

    number: int
    key: ResourceKey
    type: str
    place: Place
    documents: Sequence[Mapping[str, Any]] = ()
    elements: frozenset[str] = frozenset()
    references: Sequence[Reference] = ()
    wrong: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Catalogue:
    """
    Attributes:
        entries: In order of the tree.
        broken: Keys of documents with an error, as far as they can be told.
        unnamed: Documents without a usable name; nothing can refer to them.
        has_unread: Some file or document does not even say what it declares, so that what is
            missing may be in there.
        nameless: Kinds of broken documents without a usable name; the same holds for these.
    """

    entries: Sequence[Entry]
    broken: frozenset[ResourceKey] = frozenset()
    unnamed: Sequence[Entry] = ()
    has_unread: bool = False
    nameless: frozenset[str] = frozenset()
    by_key: Mapping[ResourceKey, Entry] = field(default_factory=dict)
    by_kind: Mapping[str, Sequence[Entry]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        entries: Iterable[Entry],
        broken: Iterable[ResourceKey] = (),
        *,
        unnamed: Iterable[Entry] = (),
        has_unread: bool = False,
        nameless: Iterable[str] = (),
    ) -> Catalogue:
        ordered = tuple(entries)
        by_key: dict[ResourceKey, Entry] = {}
        for entry in ordered:
            by_key.setdefault(entry.key, entry)
        by_kind: dict[str, list[Entry]] = {}
        for entry in ordered:
            by_kind.setdefault(entry.key.kind, []).append(entry)
        return cls(
            ordered,
            frozenset(broken),
            tuple(unnamed),
            has_unread,
            frozenset(nameless),
            by_key,
            by_kind,
        )

    def of_kind(self, kind: str) -> Sequence[Entry]:
        """The entries of a kind, in order of the tree."""
        return self.by_kind.get(kind, ())

    def is_whole(self, kind: str) -> bool:
        """Whether all documents of a kind could be read."""
        return not self.is_lacking(kind) and all(key.kind != kind for key in self.broken)

    def is_lacking(self, kind: str) -> bool:
        """Whether some document may declare a resource of the kind and does not say its name."""
        return self.has_unread or kind in self.nameless

    def whole(self, kind: str) -> dict[str, Mapping[str, Any]]:
        """
        The documents of a kind by name, if all of them are known; else none.

        What is missing or wrong may be just the one that a check would call for.
        """
        if not self.is_whole(kind):
            return {}
        return {key.name: one.documents[0] for key, one in self.by_key.items() if key.kind == kind}

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


def mentioned(
    document: Mapping[str, Any], kind: str, *, has_marks: bool = True
) -> Iterator[Reference]:
    """
    Everything that a canonical document refers to, in the order of its fields.

    A run's profile is not among it: what it says has become the run's own by now. `has_marks` is
    False when no expression stands anywhere in the document, which spares the search for secrets.
    """
    for first, steps, target in NAMING.get(kind, ()):
        for name in _names_at(document[first], steps) if first in document else ():
            # What belongs to another project is in another tree; what an expression comes to is
            # known when the run starts.
            if "/" not in name and EXPRESSION_MARK not in name:
                yield Reference(target, name, first)
    if kind == "run":
        yield from _of_run(document)
    for field_, value in document.items() if has_marks else ():
        yield from (Reference("secret", name, field_) for name in _secrets_in(value))


def _of_run(document: Mapping[str, Any]) -> Iterator[Reference]:
    for mount in document.get("volumes", ()):
        if "name" in mount and not mount.get("instance"):
            names = mount["name"] if isinstance(mount["name"], list) else [mount["name"]]
            yield from (
                Reference("volume", name, "volumes")
                for name in names
                if EXPRESSION_MARK not in name
            )
    for dependency in document.get("depends_on", {}).get("runs", ()):
        yield Reference("run", dependency["run"], "depends_on")


def _names_at(value: Any, steps: Sequence[str]) -> Iterator[str]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _names_at(item, steps)
    elif steps:
        if isinstance(value, Mapping) and steps[0] in value:
            yield from _names_at(value[steps[0]], steps[1:])
    elif isinstance(value, str):
        yield value


# `$${{` stands for the two braces themselves: such a text names nothing.
_SECRET = re.compile(r"(?<!\$)\$\{\{\s*secrets\.([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}", re.ASCII)


def _secrets_in(value: Any) -> Iterator[str]:
    """Secrets that expressions name, anywhere in a value; looking costs next to nothing."""
    if isinstance(value, str):
        if EXPRESSION_MARK in value:
            yield from _SECRET.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _secrets_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _secrets_in(item)


def required(references: Iterable[Reference]) -> tuple[ResourceKey, ...]:
    """Keys of what must exist before the resource does, sorted; runs it waits for are not."""
    return tuple(
        sorted({ResourceKey(one.kind, one.name) for one in references if one.kind in CREATED})
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
