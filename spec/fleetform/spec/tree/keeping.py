"""
What a load learned of single documents, put into the cache for the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fleetform.spec.tree.cache import Header, Kept, KeptFile, ReadingCache
from fleetform.spec.tree.change_detection import OF_THE_TREE
from fleetform.spec.tree.findings import quoted
from fleetform.spec.tree.header import header_of
from fleetform.spec.tree.read import Read
from fleetform.spec.tree.sources import Sources

__all__ = ["keep"]


def keep(cache: ReadingCache, sources: Sources, reads: Iterable[Read]) -> None:
    """Put into the cache what the next load of these files is spared."""
    by_file: dict[str, list[Read]] = {}
    for read in reads:
        by_file.setdefault(read.file, []).append(read)
    for file, count in sources.counts.items():
        found = by_file.get(file, [])
        made = [_kept_form(read, sources.data) for read in found] if len(found) == count else [None]
        kept = [one for one in made if one is not None]
        if len(kept) == len(made) and file in sources.parsed:
            sha256, look = sources.parsed[file]
            cache.keep(KeptFile(file, sha256, look, kept))
    for source in sources.kept_files:
        _renew(source, by_file.get(source.path, []), cache, sources.data)


def _renew(
    file: KeptFile, reads: list[Read], cache: ReadingCache, data: Mapping[str, bytes]
) -> None:
    """Keep what was learned of documents that were kept: other places, other conditions."""
    if all(_is_known(read) for read in reads) or len(reads) != len(file.documents):
        return
    made = [
        file.documents[number] if _is_known(read) else _kept_form(read, data)
        for number, read in enumerate(reads)
    ]
    kept = [one for one in made if one is not None]
    if len(kept) == len(made):
        cache.keep(KeptFile(file.path, file.sha256, file.look, kept))


def _kept_form(read: Read, data: Mapping[str, bytes]) -> Kept | None:
    """What to keep of a document; None where that would be of no use."""
    outcome = read.outcome
    told = read.told or {}
    if read.conditions is None or outcome.is_spoiled or len(told) != len(read.problems):
        return None
    if any(one.code in OF_THE_TREE for one in outcome.problems):
        return None
    if read.stub is not None:
        header: Header | None = read.stub[0].documents[read.stub[1]].header
    else:
        assert read.node is not None, read.file
        header = header_of(read.node)
    if header is None:
        return None
    found = quoted(data, read.file, told.values())
    return Kept(header, outcome, read.conditions, dict(zip(told, found, strict=True)))


def _is_known(read: Read) -> bool:
    """Whether it comes from a kept document, and nothing is told of it that was not before."""
    if read.stub is None:
        return False
    file, number = read.stub
    return not read.told or read.told.keys() <= file.documents[number].told.keys()
