"""Extents of a text as the protocol's ranges."""

from __future__ import annotations

from lsprotocol import types

from fleetform.lsp.text import Encoding, Extent, Point, Text

__all__ = ["offset_of", "range_of"]


def range_of(extent: Extent, text: Text, encoding: Encoding) -> types.Range:
    start, end = text.point(extent.start, encoding), text.point(extent.end, encoding)
    return types.Range(types.Position(*start), types.Position(*end))


def offset_of(position: types.Position, text: Text, encoding: Encoding) -> int:
    return text.offset_at(Point(position.line, position.character), encoding)
