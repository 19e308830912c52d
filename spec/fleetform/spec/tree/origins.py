"""
Where each declared resource comes from, among readings that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.table import Table
from fleetform.spec.tree.cache import Kept, KeptFile
from fleetform.spec.tree.outcome import Conditions, Outcome
from fleetform.spec.tree.resources import declared_of
from fleetform.spec.tree.whole import Rows

__all__ = ["Made", "Origins", "table_of"]


class Made(NamedTuple):
    """
    What a resource is made of: the file, what its document came to, the row of that.

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
