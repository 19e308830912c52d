"""
Declared resources by key, each made on first use.

Most of those who are given ten thousand declared resources compare digests and look at the few
that differ. A `Declared` has a document and eleven fields, so making all of them takes longer
than everything else that a plan with nothing to do does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, KeysView, Mapping
from typing import Any

from fleetform.spec.desired import Declared, Obstacle, ResourceKey, Unsupported

__all__ = ["Table", "UnsupportedTable", "digests_of"]


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
