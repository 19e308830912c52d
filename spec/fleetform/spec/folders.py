"""
Which directories a declared path leads through: one volume must not lie in another's.

Documents have each path in one spelling (`kinds.volume.directory`), and so has whatever was made
from them: here paths are compared as they are.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

__all__ = ["Places", "folders_of"]

Item = TypeVar("Item")


def folders_of(path: str) -> Iterator[str]:
    """
    Yield the folders that a directory's path leads through, innermost first, without itself.

    A relative path, whose directory lies in the folder of the environment's volumes, leads through
    that: `.`.
    """
    while (outer := posixpath.dirname(path) or ".") != path:
        yield outer
        path = outer


class Places(Generic[Item]):
    """What lies where, found from a directory: in it, around it and within."""

    def __init__(self, lying: Iterable[tuple[str, Item]]) -> None:
        self._at: dict[str, list[Item]] = {}
        for path, item in lying:
            self._at.setdefault(path, []).append(item)
        # By each folder that leads to something: what that is. Most that is asked for comes to an
        # empty place, so it is made for the first who asks.
        self._below: Mapping[str, Sequence[Item]] | None = None

    def __bool__(self) -> bool:
        return bool(self._at)

    def at(self, path: str) -> Sequence[Item]:
        """What has this very directory."""
        return self._at.get(path, ())

    def around(self, path: str) -> Iterator[Item]:
        """What has a directory that this one lies in, innermost first."""
        for folder in folders_of(path):
            yield from self._at.get(folder, ())

    def within(self, path: str) -> Sequence[Item]:
        """What has a directory that lies in this one."""
        if self._below is None:
            self._below = _by_folder(self._at)
        return self._below.get(path, ())

    def meets(self, path: str) -> bool:
        """Tell whether anything would share data with the owner of this directory."""
        return bool(self.at(path) or self.within(path) or any(True for _ in self.around(path)))


def _by_folder(lying: Mapping[str, Sequence[Item]]) -> Mapping[str, Sequence[Item]]:
    found: dict[str, list[Item]] = {}
    for path, items in lying.items():
        for folder in folders_of(path):
            found.setdefault(folder, []).extend(items)
    return found
