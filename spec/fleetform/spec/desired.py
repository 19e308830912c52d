"""
What a tree declares, as values: the result of loading it.

Everything above `spec` works on these and never on YAML. A document here is *canonical*: one
spelling for each meaning, integers throughout (bytes, millicores, seconds), only what is set
and never a product's default, so that an upgrade with other defaults changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from fleetform.spec.findings import Finding, Level, Place

__all__ = ["Table", "UnsupportedTable", "digests_of"]


FILE_NAME = "environment.yaml"
"""The file at the top of a configuration that says which environment it is."""


class ResourceKey(NamedTuple):
    """
    A resource's address: kind and name, written `fleet/local` or `run/sweep[lr=0.1]`.

    Tasks, dev environments and services are all of kind `run`: they share one space of names.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def parent(self) -> str:
        """Name of the sweep or array that this is an element of; empty for what is none."""
        return self.name.partition("[")[0] if self.name.endswith("]") else ""


@dataclass(frozen=True, slots=True)
class Declared:
    """
    One declared resource; an element of a sweep or an array is one of its own.

    Attributes:
        key: `run/sweep[lr=0.1]` for an element.
        type: What the document's `type:` says: `fleet`, `volume`, `task`.
        document: Canonical form of what is set, interpolated. JSON values only.
        digest: SHA-256 in hex of the whole canonical document.
        execution_digest: The same of the fields whose change makes another execution; equal
            to `digest` for kinds that are not run.
        own_digest: Digest of what the resource's own document says, before anything inherited
            is merged in; tells a rerun from `stale`.
        parent: The document's name for an element, else empty.
        element: The element's identity in its parent: `lr=0.1` or `3`; else empty.
        references: What must exist before this: its fleets, its volumes.
        upstream: Names of runs this one depends on, with elements expanded.
        place: Where the document starts.
    """

    key: ResourceKey
    type: str
    document: Mapping[str, Any]
    digest: str
    execution_digest: str
    own_digest: str
    parent: str = ""
    element: str = ""
    references: tuple[ResourceKey, ...] = ()
    upstream: tuple[str, ...] = ()
    place: Place = field(default_factory=lambda: Place(""))


class Obstacle(NamedTuple):
    """
    Why a resource cannot be carried out, although nothing is wrong with its document.

    `code` is the finding's: `not-supported` or `undeclared-reference`. `field` is dotted,
    with the expression or name in it that is meant behind it.
    """

    code: str
    field: str
    detail: str


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A resource that is declared and that nothing can carry out as it is declared."""

    declared: Declared
    obstacles: tuple[Obstacle, ...]


@dataclass(frozen=True, slots=True)
class FreezeWindow:
    """
    A time in which plans are held back.

    Either `begin` and `end`, seconds since 1970 in UTC, or `cron` with `duration` in seconds and
    the time zone that the expression is of.

    Attributes:
        reason: Why, as people are told.
        only: `all`, or `destructive`: changes that destroy nothing go on.
    """

    reason: str
    begin: int | None = None
    end: int | None = None
    cron: str = ""
    duration: int = 0
    timezone: str = "UTC"
    only: str = "all"

    def document(self) -> dict[str, Any]:
        """Return JSON values of what is set."""
        said = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "reason"}
        unset = {None, "", "UTC", "all"}
        return {"reason": self.reason} | {k: v for k, v in said.items() if v not in unset}


@dataclass(frozen=True, slots=True)
class Rules:
    """
    What the environment allows without asking twice, from `environment.yaml`.

    Attributes:
        allow_destroy: Deletions and ending running work need no flag.
        delete_percent: Largest share of a kind's resources that one plan may delete, percent.
        delete_count: The same as a number; the larger of the two holds.
        freeze: When plans are held back.
    """

    allow_destroy: bool = False
    delete_percent: int = 10
    delete_count: int = 5
    freeze: tuple[FreezeWindow, ...] = ()

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Rules:
        """Make rules of JSON values: what a document says of them, or what was stored."""
        freeze = tuple(FreezeWindow(**window) for window in said.get("freeze") or ())
        return cls(**{**said, "freeze": freeze})

    def document(self) -> dict[str, Any]:
        """Return the JSON values that `of` reads; windows only where there are some."""
        said: dict[str, Any] = {
            "allow_destroy": self.allow_destroy,
            "delete_percent": self.delete_percent,
            "delete_count": self.delete_count,
        }
        return said | {"freeze": [one.document() for one in self.freeze]} if self.freeze else said


@dataclass(frozen=True, slots=True)
class Environment:
    """
    `environment.yaml`: which environment this tree is.

    `uid` is minted by `fleetform init`, committed, and stamped on everything that is made.
    `grants_root`: jobs may run as root on shared hosts.
    """

    name: str
    uid: str
    rules: Rules = field(default_factory=Rules)
    grants_root: bool = False


@dataclass(frozen=True, slots=True)
class Desired:
    """
    A tree's whole declaration.

    `resources` is in order of key. `contents` maps the SHA-256 of every file that a document
    names to its path on this machine; apply reads them again and refuses if they changed.
    `commit` is the tree's commit, `+dirty` appended when files differ from it; empty outside git.
    `broken` names what a document with an error declares as far as it can be told: such a
    resource is neither changed nor deleted. A sweep that is broken is named as a whole,
    `run/sweep`, and stands for all its elements. `unread` are files that do not say what they
    declare, since they cannot be read or parsed: while there are any, nothing may be deleted for
    being absent. `beyond` has what is declared rightly and cannot be carried out: it is not in
    `resources`, and is neither changed nor deleted. `moved` pairs each earlier name with the
    last of its chain, both without elements unless one element is meant; `removed` is forgotten
    and not deleted where it is still known; `imports` are taken in as they are found. Entries
    that were carried out before stay in the tree and mean nothing any more.
    """

    environment: Environment
    resources: Mapping[ResourceKey, Declared]
    contents: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""
    digest: str = ""
    broken: frozenset[ResourceKey] = frozenset()
    unread: tuple[str, ...] = ()
    beyond: Mapping[ResourceKey, Unsupported] = field(default_factory=dict)
    moved: tuple[tuple[ResourceKey, ResourceKey], ...] = ()
    removed: tuple[ResourceKey, ...] = ()
    imports: tuple[ResourceKey, ...] = ()


def left_alone(desired: Desired) -> frozenset[ResourceKey]:
    """
    Keys that a plan neither changes nor removes, whatever else the tree says.

    What is broken or beyond, and the sweep of an element that is: while nobody can carry out the
    document, nobody removes an element that it seems to name no more.
    """
    if not desired.broken and not desired.beyond:
        return frozenset()
    parents = {
        ResourceKey(key.kind, one.declared.parent)
        for key, one in desired.beyond.items()
        if one.declared.parent
    }
    return desired.broken | desired.beyond.keys() | parents


@dataclass(frozen=True, slots=True)
class Loaded:
    """
    The result of reading a tree: findings, and what they leave of the declaration.

    `desired` is None when `environment.yaml` itself cannot be read or has an error, or when
    the source as a whole cannot be read: that is never an empty declaration. It is None as well
    for an environment that is a base only, which has no errors. `bases` are the folders beside
    the environment's own that were read, relative to it: `../base`.
    """

    desired: Desired | None
    findings: tuple[Finding, ...]
    documents_count: int = 0
    files_count: int = 0
    bases: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.level is Level.ERROR)


# Declared resources by key, each made on first use.
#
# Most of those who are given ten thousand declared resources compare digests and look at the few
# that differ. A `Declared` has a document and eleven fields, so making all of them takes longer
# than everything else that a plan with nothing to do does.


class Table(Mapping[ResourceKey, Declared]):
    """
    Args:
        digests: Digest of the whole document by key, in order of key.
        make: The resource at a position of that order. Asked once for each.
    """

    __slots__ = ("_digests", "_made", "_make", "_positions")

    def __init__(self, digests: Mapping[ResourceKey, str], make: Callable[[int], Declared]) -> None:
        self._digests = digests
        self._make = make
        self._made: dict[ResourceKey, Declared] = {}
        self._positions: dict[ResourceKey, int] = {}

    @property
    def digests(self) -> Mapping[ResourceKey, str]:
        """Digest of each resource's whole document, in order of key."""
        return self._digests

    def __getitem__(self, key: ResourceKey) -> Declared:
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = self._make(self._position(key))
        return made

    def get(self, key: ResourceKey, default: Any = None) -> Any:
        # The one inherited tries, and catches what is raised; a plan asks for each several times.
        made = self._made.get(key)
        return made or (self[key] if key in self._digests else default)

    def _position(self, key: ResourceKey) -> int:
        if key not in self._digests:
            raise KeyError(key)
        if not self._positions:
            self._positions = {one: at for at, one in enumerate(self._digests)}
        return self._positions[key]

    def __iter__(self) -> Iterator[ResourceKey]:
        return iter(self._digests)

    def __len__(self) -> int:
        return len(self._digests)

    def __contains__(self, key: object) -> bool:
        return key in self._digests

    def keys(self) -> KeysView[ResourceKey]:
        # A dictionary's own, whose set operations are not made in Python.
        return self._digests.keys()

    def __repr__(self) -> str:
        return repr(dict(self))


class UnsupportedTable(Mapping[ResourceKey, Unsupported]):
    """The same of what nothing can carry out as it is declared, with what stands in the way."""

    __slots__ = ("_declared", "_obstacles")

    def __init__(
        self, declared: Table, obstacles: Mapping[ResourceKey, tuple[Obstacle, ...]]
    ) -> None:
        self._declared = declared
        self._obstacles = obstacles

    def __getitem__(self, key: ResourceKey) -> Unsupported:
        return Unsupported(self._declared[key], self._obstacles[key])

    def __iter__(self) -> Iterator[ResourceKey]:
        return iter(self._declared)

    def __len__(self) -> int:
        return len(self._declared)

    def __contains__(self, key: object) -> bool:
        return key in self._declared

    def __repr__(self) -> str:
        return repr(dict(self))


def digests_of(resources: Mapping[ResourceKey, Declared]) -> Mapping[ResourceKey, str]:
    """Digest of each declared resource; a table has them at hand."""
    if isinstance(resources, Table):
        return resources.digests
    return {key: one.digest for key, one in resources.items()}
