"""
Files read by themselves, without the tree that they are of: none of the checks between documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fleetform.spec.desired import Loaded
from fleetform.spec.findings import Finding
from fleetform.spec.tree.cache import ReadingCache, look_of
from fleetform.spec.tree.files import Files
from fleetform.spec.tree.findings import Told
from fleetform.spec.tree.header import is_overlaid
from fleetform.spec.tree.keeping import keep
from fleetform.spec.tree.read import Read
from fleetform.spec.tree.readings import Readings
from fleetform.spec.tree.sources import Sources

__all__ = ["load_alone", "read_again"]


def load_alone(
    root: Path, file: str, cache: ReadingCache | None, buffers: Mapping[str, bytes]
) -> Loaded:
    """
    Read one file below the root by itself, as if there were nothing else.

    What its documents refer to may be anywhere, so nothing is said of it.
    """
    told = Told()
    sources = Sources(root, buffers, cache, told.tell)
    try:
        if cache is not None:
            cache.begin()
        readings = Readings(_files(root, cache), sources, {})
        reads = list(readings.of_file(sources.given(file, look=_look_of_file(root / file))))
        readings.tell_problems(reads, told)
        if cache is not None:
            keep(cache, sources, reads)
            cache.end()
        return Loaded(None, told.sorted(sources.data), len(reads), len(sources.files))
    finally:
        sources.close()


def _look_of_file(path: Path) -> str:
    try:
        return look_of(path.stat())
    except (OSError, ValueError):
        return ""


def read_again(
    root: Path, cache: ReadingCache, files: Iterable[tuple[str, str]], values: Mapping[str, Any]
) -> tuple[Finding, ...] | None:
    """
    Read files that have changed, of a tree of which all else is as it was, into the cache.

    Args:
        root: The environment's folder.
        cache: What is known of the tree, added to.
        files: Each with how it looks.
        values: The environment's.

    Returns:
        What is wrong with their documents alone; None where that takes the whole tree.
    """
    told = Told()
    sources = Sources(root, {}, cache, told.tell)
    try:
        cache.begin()
        given = [sources.given(file, look=look) for file, look in files]
        if sources.unread or is_overlaid(given):
            return None
        readings = Readings(_files(root, cache), sources, values)
        reads: list[Read] = [read for one in given for read in readings.of_file(one)]
        readings.tell_problems(reads, told)
        keep(cache, sources, reads)
        return told.sorted(sources.data)
    finally:
        sources.close()


def _files(root: Path, cache: ReadingCache | None) -> Files:
    return Files(root, {} if cache is None else cache.digests)
