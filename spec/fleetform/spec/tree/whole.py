"""
Keep the result of loading a whole configuration, and where each of its resources is declared.

The result is valid while each file has the same content, and what documents name under `files:` is the
same. Then no documents are compared again, and a resource is made when it is first used. `incremental`
checks whether the result is valid.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from fleetform.spec.canonical import digest
from fleetform.spec.desired import (
    Declared,
    Desired,
    Environment,
    Loaded,
    Obstacle,
    ResourceKey,
    Rules,
    Table,
    UnsupportedTable,
)
from fleetform.spec.findings import Finding
from fleetform.spec.references import mentioned, required
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.cache import Conditions, FilesAnswer, Kept, KeptFile, Outcome, Row

__all__ = [
    "Input",
    "Made",
    "Origin",
    "Origins",
    "Rows",
    "Whole",
    "declared_of",
    "digests_by_address",
    "document_of",
    "table_of",
    "tree_digest",
]


def declared_of(outcome: Outcome, row: Row, upstream: tuple[str, ...]) -> Declared:
    """The resource of one row; `upstream` are the names of the runs that it waits for."""
    key = outcome.keys[0]
    document = document_of(outcome, row)
    return Declared(
        ResourceKey(key.kind, row.name),
        outcome.type,
        document,
        row.digest,
        row.execution_digest,
        row.own_digest,
        key.name if row.identity else "",
        row.identity,
        required(mentioned(document, key.kind)) if outcome.required is None else outcome.required,
        upstream,
        outcome.place,
    )


def document_of(outcome: Outcome, row: Row) -> Mapping[str, object]:
    """Its whole canonical document."""
    return {**outcome.shared, **row.own} if row.own else outcome.shared


def digests_by_address(*tables: Table) -> dict[str, str]:
    """Digest of each resource's whole document, by its address: `run/train`."""
    return {str(key): digest for table in tables for key, digest in table.digests.items()}


def tree_digest(digests: Mapping[str, str], rules: Rules, addresses: Addresses) -> str:
    """Digest of all that a tree declares; `digests` are those of whole documents, by address."""
    said = {
        name: [[str(key) for key in one] for one in keys]
        for name, keys in (
            ("moved", addresses.moved),
            ("removed", [(key,) for key in addresses.removed]),
            ("import", [(key,) for key in addresses.imports]),
        )
        if keys
    }
    return digest(
        {
            **said,
            "resources": digests,
            "rules": {
                "allow_destroy": rules.allow_destroy,
                "delete_percent": rules.delete_percent,
                "delete_count": rules.delete_count,
                **({"freeze": [asdict(one) for one in rules.freeze]} if rules.freeze else {}),
            },
        }
    )


class Input(NamedTuple):
    """
    A file that is part of the configuration and has no reading in the cache.

    Attributes:
        look: How it looked before it was read; empty if unknown.
        base: The folder that contains it: the environment's own or a base.
    """

    sha256: str
    look: str
    base: str


class Origin(NamedTuple):
    """Where a resource is declared: all three are positions."""

    file: int
    document: int
    row: int


@dataclass(frozen=True, slots=True)
class Rows:
    """
    What most callers need of the resources.

    Attributes:
        digests: Of the whole document, in order of key.
        origins: In the same order, an `Origin`'s three numbers for each.
        upstream: By position, of those that wait for runs.
    """

    digests: Mapping[ResourceKey, str]
    origins: Sequence[int]
    upstream: Mapping[int, tuple[str, ...]]

    def origin(self, position: int) -> Origin:
        return Origin(*self.origins[3 * position : 3 * position + 3])


@dataclass(frozen=True, slots=True)
class Whole:
    """
    Attributes:
        own: Which environment it is by its own document, without what it inherits.
        frame: What the configuration declares, without its resources, contents and commit.
        files: Readings, as origins count them; the last has no path, and the documents that an
            overlay has made.
        findings: All findings, sorted.
        folders: Those that were walked, relative to the root, which is the empty one.
        walked_count: YAML files in them.
        inputs: Files that were read besides those with readings, by path.
        answers: What was found for `files:`, each once.
        values: The environment's.
        budget_left: What all documents together have left of it.
        is_alone: Documents are what is written in them: no base, no patch, no profile.
        has_disputes: Some document has a problem with another document.
        claims: The places of volumes, as text (`change_detection`); None where they have no such text.
    """

    own: Environment | None
    frame: Desired
    resources: Rows
    beyond: Rows
    obstacles: Mapping[ResourceKey, tuple[Obstacle, ...]]
    files: tuple[KeptFile, ...]
    findings: tuple[Finding, ...]
    documents_count: int
    files_count: int
    folders: tuple[str, ...]
    walked_count: int
    inputs: Mapping[str, Input]
    answers: tuple[FilesAnswer, ...]
    addresses: Addresses
    values: Mapping[str, Any]
    budget_left: tuple[int, int, int]
    is_alone: bool
    has_disputes: bool
    claims: str | None

    def loaded(self, contents: Mapping[str, str], commit: str) -> Loaded:
        """The result of the load that it stands for."""
        desired = replace(
            self.frame,
            resources=self._table(self.resources),
            beyond=UnsupportedTable(self._table(self.beyond), self.obstacles),
            contents=contents,
            commit=commit,
        )
        bases = self.folders[1:]
        return Loaded(desired, self.findings, self.documents_count, self.files_count, bases)

    def _table(self, rows: Rows) -> Table:
        files = self.files

        def make(position: int) -> Declared:
            origin = rows.origin(position)
            outcome = files[origin.file].documents[origin.document].outcome
            upstream = rows.upstream.get(position, ())
            return declared_of(outcome, outcome.rows[origin.row], upstream)

        return Table(rows.digests, make)


class Made(NamedTuple):
    """
    The source of a resource: its file, the outcome of its document, and the row of that outcome.

    `upstream` are the names of the runs that it waits for.
    """

    file: str
    outcome: Outcome
    row: int
    upstream: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of its whole document."""
        return self.outcome.rows[self.row].digest


def table_of(made: Mapping[ResourceKey, Made]) -> Table:
    """The resources, in the order that they have here, each made when it is asked for."""
    ordered = list(made.values())

    def make(position: int) -> Declared:
        one = ordered[position]
        return declared_of(one.outcome, one.outcome.rows[one.row], one.upstream)

    return Table({key: one.digest for key, one in made.items()}, make)


class Origins:
    """
    Attributes:
        overlaid: Documents that no reading has as they are, since an overlay made them. They
            count as the documents of one more file.
    """

    def __init__(self, files: Sequence[KeptFile]) -> None:
        self._files = {file.path: (number, file) for number, file in enumerate(files)}
        self._documents: dict[int, tuple[int, int]] = {}
        self._seen: set[str] = set()
        self.overlaid: list[Kept] = []

    def rows(self, made: Mapping[ResourceKey, Made]) -> Rows:
        """What to keep of resources, and of what they are made."""
        origins: list[int] = []
        upstream = {}
        for position, one in enumerate(made.values()):
            origins.extend((*self._document(one), one.row))
            if one.upstream:
                upstream[position] = one.upstream
        return Rows({key: one.digest for key, one in made.items()}, origins, upstream)

    def _document(self, made: Made) -> tuple[int, int]:
        """The file's number, and the document's in it."""
        if made.file not in self._seen:
            self._seen.add(made.file)
            number, file = self._files.get(made.file, (0, None))
            for at, kept in enumerate(file.documents if file else ()):
                # By identity: a reading of the file may be another than the one that was used.
                self._documents[id(kept.outcome)] = number, at
        known = self._documents.get(id(made.outcome))
        if known is None:
            known = self._documents[id(made.outcome)] = len(self._files), len(self.overlaid)
            self.overlaid.append(Kept((), made.outcome, Conditions(), {}))
        return known
