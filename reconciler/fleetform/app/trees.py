"""
Loads a tree with what is known of it from before.

The cache lies beside the state, in a folder of its own that anybody may delete: it is never
asked for what is true, only whether the work has been done already.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.paths import cache_home

if TYPE_CHECKING:
    from fleetform.spec.desired import Environment, Loaded
    from fleetform.spec.tree.cache import ReadingCache

__all__ = ["TreeLoader", "known_environment", "load_alone"]


class TreeLoader:
    """For one tree; whoever loads again and again keeps it, and reads the cache once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = cache_home()
        self._cache: ReadingCache | None = None
        self._lock = threading.Lock()

    def load(self) -> Loaded:
        """Read the whole tree; what is wrong with it comes as findings."""
        from fleetform.spec.tree import load_tree

        # A cache serves one load at a time, and a second one is not worth waiting for.
        if self._folder is None or not self._lock.acquire(blocking=False):
            return load_tree(self._root)
        try:
            return self._load(self._folder)
        finally:
            self._lock.release()

    def load_with(self, buffers: Mapping[str, bytes]) -> Loaded:
        """
        Read the tree as it would be with other contents of some files, by path in the tree.

        Nothing of this is kept: the contents may never be written.
        """
        from fleetform.spec.tree import load_tree

        if self._folder is None or not self._lock.acquire(blocking=False):
            return load_tree(self._root, buffers=buffers)
        try:
            from fleetform.spec.tree.cache_file import open_cache

            # A cache of its own: what is read of buffers must not count as read of files.
            cache = open_cache(self._folder / "readings", self._root)
            return load_tree(self._root, cache=cache, buffers=buffers)
        finally:
            self._lock.release()

    def _load(self, folder: Path) -> Loaded:
        from fleetform.spec.tree import load_tree
        from fleetform.spec.tree.cache_file import open_cache, save_cache

        if self._cache is None:
            self._cache = open_cache(folder / "readings", self._root)
        loaded = load_tree(self._root, cache=self._cache)
        save_cache(self._cache, folder / "readings", self._root)
        return loaded


def known_environment(root: Path) -> Environment | None:
    """Which environment the tree is, where its file is as it was when the tree was read last."""
    home = cache_home()
    if home is None:
        return None
    from fleetform.spec.tree.cache_format import kept_environment

    return kept_environment(home / "readings", root)


def load_alone(root: Path, file: str) -> Loaded:
    """Read one file that belongs to no environment; `root` bounds what it may name."""
    from fleetform.spec.tree import load_file

    home = cache_home()
    if home is None:
        return load_file(root, file)
    from fleetform.spec.tree.cache_file import open_cache, save_cache

    folder = home / "readings"
    cache = open_cache(folder, root / file)
    loaded = load_file(root, file, cache=cache)
    save_cache(cache, folder, root / file)
    return loaded
