"""
A document's text, the three ways to count in it, and its extents as the protocol's ranges.

Findings and nodes count as people do: lines and columns from 1, in characters, with libyaml's
idea of a line. Editors count from 0, with fewer kinds of line break, and within a line in
whatever unit was agreed on: UTF-16 unless said otherwise, where an emoji is two. Offsets into the
text stand between both, so that neither has to know the other.
"""

from __future__ import annotations

import enum
import re
from bisect import bisect_right
from typing import NamedTuple

from lsprotocol import types

from fleetform.spec.nodes import Span

__all__ = ["Encoding", "Extent", "Point", "Text", "offset_of", "range_of"]

# What libyaml ends a line at, and what the protocol does:
# https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification/#textDocuments
_YAML_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_EDITOR_BREAK = re.compile("\r\n|[\n\r]")
_MARK = "\ufeff"


class Encoding(enum.StrEnum):
    """In what an editor counts within a line, by its name in the protocol."""

    UTF8 = "utf-8"
    UTF16 = "utf-16"
    UTF32 = "utf-32"


class Extent(NamedTuple):
    """A piece of a text: offsets of its first character and of the one behind its last."""

    start: int
    end: int

    def holds(self, offset: int) -> bool:
        """Whether a cursor at `offset` is on it; right behind its last character still is."""
        return self.start <= offset <= self.end


class Point(NamedTuple):
    """A place as an editor counts: line and character from 0."""

    line: int
    character: int


class Text:
    """One version of one document's text; never changes."""

    __slots__ = ("_editor_starts", "_yaml_starts", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._yaml_starts: list[int] | None = None
        self._editor_starts: list[int] | None = None

    @classmethod
    def of(cls, data: bytes) -> Text:
        """The text of a file; where it is not UTF-8, something of the same lines."""
        return cls(data.decode("utf-8", "replace"))

    @property
    def data(self) -> bytes:
        """
        What the file would contain.

        A half of a surrogate pair, which JSON can carry and UTF-8 cannot, becomes bytes that
        are not UTF-8, and these are a finding like any others.
        """
        return self.source.encode("utf-8", "surrogatepass")

    def offset_of(self, span: Span) -> int:
        """The offset of a node's first character."""
        if self._yaml_starts is None:
            # A byte order mark belongs to no line: the nodes are counted behind it.
            first = 1 if self.source.startswith(_MARK) else 0
            self._yaml_starts = [first, *_line_starts(self.source, _YAML_BREAK)]
        starts = self._yaml_starts
        line = min(max(span.line, 1), len(starts)) - 1
        return min(starts[line] + max(span.column, 1) - 1, len(self.source))

    def extent_of(self, span: Span) -> Extent:
        """What a caret line would underline."""
        start = self.offset_of(span)
        return Extent(start, min(start + max(span.length, 1), len(self.source)))

    def slice(self, extent: Extent) -> str:
        return self.source[extent.start : extent.end]

    def point(self, offset: int, encoding: Encoding) -> Point:
        """Where an offset stands for the editor."""
        starts = self._starts()
        line = bisect_right(starts, offset) - 1
        return Point(line, _units(self.source[starts[line] : offset], encoding))

    def offset_at(self, point: Point, encoding: Encoding) -> int:
        """
        The offset of an editor's place.

        A place behind the end of its line is the end of the line, as the protocol has it; one
        behind the last line is the end of the text.
        """
        starts = self._starts()
        if point.line >= len(starts):
            return len(self.source)
        line = self.line(max(point.line, 0))
        if line.isascii() or encoding is Encoding.UTF32:
            return starts[point.line] + min(point.character, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= point.character:
                return starts[point.line] + index
            units += _units(character, encoding)
        return starts[point.line] + len(line)

    def line(self, number: int) -> str:
        """A line as the editor numbers them, from 0, without its break."""
        starts = self._starts()
        end = starts[number + 1] if number + 1 < len(starts) else len(self.source)
        return self.source[starts[number] : end].rstrip("\r\n")

    def _starts(self) -> list[int]:
        if self._editor_starts is None:
            self._editor_starts = [0, *_line_starts(self.source, _EDITOR_BREAK)]
        return self._editor_starts


def _line_starts(source: str, breaks: re.Pattern[str]) -> list[int]:
    return [found.end() for found in breaks.finditer(source)]


def _units(piece: str, encoding: Encoding) -> int:
    if piece.isascii() or encoding is Encoding.UTF32:
        return len(piece)
    if encoding is Encoding.UTF8:
        return len(piece.encode("utf-8", "surrogatepass"))
    return len(piece.encode("utf-16-le", "surrogatepass")) // 2


def range_of(extent: Extent, text: Text, encoding: Encoding) -> types.Range:
    start, end = text.point(extent.start, encoding), text.point(extent.end, encoding)
    return types.Range(types.Position(*start), types.Position(*end))


def offset_of(position: types.Position, text: Text, encoding: Encoding) -> int:
    return text.offset_at(Point(position.line, position.character), encoding)
