"""
Live rows of which most are as they are declared, and nothing more is asked of those.

A plan with nothing to do compares ten thousand digests. Reading all other columns of these rows and
making values of them took longer than the rest of it, so they are read when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from fleetform.model.live import LiveResource
from fleetform.spec.desired import ResourceKey

__all__ = ["Rows", "RowsOutdated", "changed_rows", "present_rows", "unchanged_digests"]


class RowsOutdated(Exception):
    """The ledger has moved on since the rows were read: what is left of them is another reading."""


class Rows(Mapping[ResourceKey, LiveResource]):
    """
    Rows by key, in order of key.

    Args:
        unchanged: Digests of rows that are as they are declared, and of which a plan has nothing else
            to say: no tombstone, no unfinished operation, no run but one that is done.
        changed: All other rows.
        read_all: Reads the whole of all rows, in the state in which these were read.

    Looking up an unchanged row may raise `RowsOutdated`.
    """

    __slots__ = ("_all", "_changed", "_keys", "_read_all", "_unchanged")

    def __init__(
        self,
        unchanged: Mapping[ResourceKey, str],
        changed: Mapping[ResourceKey, LiveResource],
        read_all: Callable[[], Mapping[ResourceKey, LiveResource]],
    ) -> None:
        self._unchanged = unchanged
        self._changed = changed
        self._read_all = read_all
        self._all: Mapping[ResourceKey, LiveResource] | None = None
        self._keys: list[ResourceKey] | None = None

    @property
    def unchanged(self) -> Mapping[ResourceKey, str]:
        """Digests of rows of which nothing else need be known."""
        return self._unchanged

    @property
    def changed(self) -> Mapping[ResourceKey, LiveResource]:
        """The other rows."""
        return self._changed

    def present(self, kinds: Collection[str]) -> Rows:
        """The rows of these kinds that are no tombstones; an unchanged row is one of them."""
        changed = {
            key: row for key, row in self._changed.items() if not row.archived and key.kind in kinds
        }
        return Rows(self._unchanged, changed, self._whole)

    def __getitem__(self, key: ResourceKey) -> LiveResource:
        row = self._changed.get(key)
        if row is not None:
            return row
        if key not in self._unchanged:
            raise KeyError(key)
        return self._whole()[key]

    def _whole(self) -> Mapping[ResourceKey, LiveResource]:
        if self._all is None:
            self._all = self._read_all()
        return self._all

    def __iter__(self) -> Iterator[ResourceKey]:
        if self._keys is None:
            self._keys = sorted((*self._unchanged, *self._changed))
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._unchanged) + len(self._changed)

    def __contains__(self, key: object) -> bool:
        return key in self._unchanged or key in self._changed


def unchanged_digests(rows: Mapping[ResourceKey, LiveResource]) -> Mapping[ResourceKey, str]:
    """Digests of those rows of which nothing else need be known; none where all are at hand."""
    return rows.unchanged if isinstance(rows, Rows) else {}


def changed_rows(
    rows: Mapping[ResourceKey, LiveResource],
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of which more than a digest may matter, whether they differ or not."""
    return rows.changed if isinstance(rows, Rows) else rows


def present_rows(
    rows: Mapping[ResourceKey, LiveResource], kinds: Collection[str]
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of these kinds that are no tombstones."""
    if isinstance(rows, Rows):
        return rows.present(kinds)
    return {key: row for key, row in rows.items() if not row.archived and key.kind in kinds}
