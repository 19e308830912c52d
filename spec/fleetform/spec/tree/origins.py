"""
Where each declared resource comes from, among readings that are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fleetform.spec.desired import Declared, ResourceKey
from fleetform.spec.tree.cache import Kept, KeptFile
from fleetform.spec.tree.outcome import Conditions, Outcome
from fleetform.spec.tree.whole import Rows

__all__ = ["Made", "Origins"]


class Made(NamedTuple):
    """What a resource was made of: the file, what its document came to, and the row of that."""

    file: str
    outcome: Outcome
    row: int


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

    def rows(
        self, declared: Mapping[ResourceKey, Declared], made: Mapping[ResourceKey, Made]
    ) -> Rows:
        """`made` has at least what is declared."""
        origins: list[int] = []
        upstream = {}
        for position, (key, one) in enumerate(declared.items()):
            source = made[key]
            origins.extend((*self._document(source), source.row))
            if one.upstream:
                upstream[position] = one.upstream
        return Rows({key: one.digest for key, one in declared.items()}, origins, upstream)

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
