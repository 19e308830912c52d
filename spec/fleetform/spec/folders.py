"""Which directories a declared path leads through: one volume must not lie in another's."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

__all__ = ["folders_of"]


def folders_of(path: str) -> Iterator[str]:
    """
    Yield the folders that a directory's path leads through, innermost first, without itself.

    A relative path, whose directory lies in the folder of the environment's volumes, leads through
    that: `.`.
    """
    while (outer := posixpath.dirname(path) or ".") != path:
        yield outer
        path = outer
