"""
What a whole tree came to, kept beside the readings of its files.

It holds while each file has the content that it had, and what documents name under `files:` comes
to the same. Then nothing is compared again and no document is made into a value before somebody
asks for it. `incremental` finds out whether it holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from fleetform.spec.desired import Declared, Desired, Loaded, Obstacle, ResourceKey
from fleetform.spec.findings import Finding
from fleetform.spec.table import BeyondTable, Table
from fleetform.spec.tree.addresses import Addresses
from fleetform.spec.tree.cache import KeptFile
from fleetform.spec.tree.outcome import FilesAnswer
from fleetform.spec.tree.resources import declared_of

__all__ = ["Input", "Origin", "Rows", "Whole"]


class Input(NamedTuple):
    """
    A file that has a part in the tree, and no reading of its own that is kept.

    Attributes:
        look: How it looked before it was read; empty when nobody knows.
        base: The folder that it lies in, of those the tree is made of.
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
    Resources as far as most people ask for them.

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
        frame: What the tree declares, without its resources, contents and commit.
        files: Readings, as origins count them; the last has no path, and the documents that an
            overlay has made.
        findings: All that was told, sorted.
        folders: Those that were walked, relative to the root, which is the empty one.
        walked_count: YAML files in them.
        inputs: Files that were read besides those with readings, by path.
        answers: What was found for `files:`, each once.
        values: The environment's.
        budget_left: What all documents together have left of it.
        is_alone: Documents are what is written in them: no base, no patch, no profile.
        has_disputes: Some document has a problem with others.
        claims: What volumes have to themselves; None where that is no text (`claims`).
    """

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
            beyond=BeyondTable(self._table(self.beyond), self.obstacles),
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
