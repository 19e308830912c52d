"""
A file of many documents as parts of its text, each with one of them.

Whoever changes a value among a hundred documents of a file has left ninety-nine as they were. A
document is read again only where its text is another: `---` at the beginning of a line begins one
whatever stands before it, and nothing that a document means depends on another one of its file,
with these exceptions, for which a file has no parts:

- directives, which stand before the documents that they are for; so a line with `%` or `...` at
  its beginning;
- how much the file may ask for, all documents together (`bounds.Limits`): a file so small, and
  without aliases, cannot reach it;
- other ends of lines than newlines, which libyaml counts in its own ways, and a byte order mark.

Where a document has moved to other lines, its places have. A file that has findings of its own
is read as a whole, each time.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from fleetform.spec.bounds import DEFAULT
from fleetform.spec.tree.cache import Kept, Part

__all__ = ["Piece", "moved", "pieces_of", "with_parts"]

# Nobody who sends a branch can find two texts that are taken for each other, and ten thousand
# documents have one each.
_DIGEST = 40
# No byte of a text makes more than three values (`?`), unless aliases repeat them.
_BYTES_MAX = DEFAULT.nodes_max // 3
_ALONE = re.compile(
    rb"\A\xef\xbb\xbf|^(?:%|\.\.\.)|\*[0-9A-Za-z_-]|\r|\xc2\x85|\xe2\x80[\xa8\xa9]", re.MULTILINE
)
_BEGINNING = re.compile(rb"^---(?=[ \t\n]|\Z)", re.MULTILINE)


class Piece(NamedTuple):
    """A part of a file with the bytes that it is made of."""

    part: Part
    data: bytes


def pieces_of(data: bytes) -> list[Piece]:
    """The parts of a file, in order; none where it has to be read as a whole."""
    if len(data) > _BYTES_MAX or _ALONE.search(data):
        return []
    begins = [found.start() for found in _BEGINNING.finditer(data)]
    ends = sorted({0, *begins, len(data)})
    pieces = []
    line = 1
    for start, end in pairwise(ends):
        text = data[start:end]
        pieces.append(Piece(Part(hashlib.sha256(text).hexdigest()[:_DIGEST], line), text))
        line += text.count(b"\n")
    return pieces if len(pieces) > 1 else []


def with_parts(documents: Sequence[Kept], data: bytes) -> list[Kept]:
    """The documents of a file that was just read, each with its part where it has one of its own."""
    pieces = pieces_of(data)
    if not pieces:
        return list(documents)
    lines = [piece.part.line for piece in pieces]
    numbers = [bisect_right(lines, kept.outcome.place.line) - 1 for kept in documents]
    counts = Counter(numbers)
    return [
        kept._replace(part=pieces[number].part if counts[number] == 1 else None)
        for kept, number in zip(documents, numbers, strict=True)
    ]


def moved(kept: Kept, part: Part) -> Kept | None:
    """
    A document where its text stands now; None where it has to be read there.

    What is told of a document quotes places, so one that has problems must not have moved.
    """
    assert kept.part is not None, "it is known by its part"
    lines = part.line - kept.part.line
    if not lines:
        return kept
    if kept.told or kept.outcome.problems:
        return None
    place = kept.outcome.place
    outcome = kept.outcome._replace(place=replace(place, line=place.line + lines))
    return kept._replace(outcome=outcome, part=part)
