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
        quiet: Digests of rows that are as they are declared, and of which a plan has nothing else
            to say: no tombstone, no unfinished operation, no run but one that is done.
        restless: All other rows.
        read_all: Reads the whole of all rows, in the state in which these were read.

    Looking up a quiet row may raise `RowsOutdated`.
    """

    __slots__ = ("_all", "_keys", "_quiet", "_read_all", "_restless")

    def __init__(
        self,
        quiet: Mapping[ResourceKey, str],
        restless: Mapping[ResourceKey, LiveResource],
        read_all: Callable[[], Mapping[ResourceKey, LiveResource]],
    ) -> None:
        self._quiet = quiet
        self._restless = restless
        self._read_all = read_all
        self._all: Mapping[ResourceKey, LiveResource] | None = None
        self._keys: list[ResourceKey] | None = None

    @property
    def quiet(self) -> Mapping[ResourceKey, str]:
        """Digests of rows of which nothing else need be known."""
        return self._quiet

    @property
    def restless(self) -> Mapping[ResourceKey, LiveResource]:
        """The other rows."""
        return self._restless

    def present(self, kinds: Collection[str]) -> Rows:
        """The rows of these kinds that are no tombstones; what is quiet is one of them."""
        restless = {
            key: row
            for key, row in self._restless.items()
            if not row.archived and key.kind in kinds
        }
        return Rows(self._quiet, restless, self._whole)

    def __getitem__(self, key: ResourceKey) -> LiveResource:
        row = self._restless.get(key)
        if row is not None:
            return row
        if key not in self._quiet:
            raise KeyError(key)
        return self._whole()[key]

    def _whole(self) -> Mapping[ResourceKey, LiveResource]:
        if self._all is None:
            self._all = self._read_all()
        return self._all

    def __iter__(self) -> Iterator[ResourceKey]:
        if self._keys is None:
            self._keys = sorted((*self._quiet, *self._restless))
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._quiet) + len(self._restless)

    def __contains__(self, key: object) -> bool:
        return key in self._quiet or key in self._restless


def unchanged_digests(rows: Mapping[ResourceKey, LiveResource]) -> Mapping[ResourceKey, str]:
    """Digests of those rows of which nothing else need be known; none where all are at hand."""
    return rows.quiet if isinstance(rows, Rows) else {}


def changed_rows(
    rows: Mapping[ResourceKey, LiveResource],
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of which more than a digest may matter, whether they differ or not."""
    return rows.restless if isinstance(rows, Rows) else rows


def present_rows(
    rows: Mapping[ResourceKey, LiveResource], kinds: Collection[str]
) -> Mapping[ResourceKey, LiveResource]:
    """The rows of these kinds that are no tombstones."""
    if isinstance(rows, Rows):
        return rows.present(kinds)
    return {key: row for key, row in rows.items() if not row.archived and key.kind in kinds}
