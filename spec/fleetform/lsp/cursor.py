"""
What stands under a cursor, and what is being typed there.

The text up to the cursor, with a marker for what comes next, is read by the same reader as all
documents. It ends in the middle, so it is broken as often as not; the reader gives what it has
read by then, and the marker is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fleetform.lsp.references import kind_of
from fleetform.lsp.text import Extent, Text
from fleetform.spec.interpolate import MARK
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, scalars
from fleetform.spec.syntax import read_stream
from fleetform.spec.tree.sources import implied

__all__ = ["Here", "Typing", "document_at", "here", "type_of", "typing_at"]


# What stands under a cursor: the document, the path in it, and the node.
# A key stands for its field, a scalar for its value; between them, and in comments, is nothing.
class Here(NamedTuple):
    """
    Attributes:
        root: The document.
        path: Keys and positions from the root.
        node: The value at `path`, or the key's value when the cursor is on a key.
        is_key: The cursor is on the key.
        extent: What the cursor is on, as far as it stands on one line.
    """

    root: MappingNode
    path: tuple[str | int, ...]
    node: Node
    is_key: bool
    extent: Extent

    @property
    def type(self) -> str:
        return type_of(self.root)

    @property
    def kind(self) -> str:
        return kind_of(self.root)


class _Spot(NamedTuple):
    extent: Extent
    path: tuple[str | int, ...]
    node: Node
    is_key: bool
    is_open: bool
    """Where it ends is not known: a text of several lines."""


def here(text: Text, offset: int) -> Here | None:
    """What the cursor at `offset` is on, in a text that may be broken further down."""
    root = document_at(text, offset)
    if root is None:
        return None
    best = None
    for spot in _spots(root, (), text):
        if spot.extent.start <= offset and (best is None or spot.extent.start >= best.extent.start):
            best = spot
    if best is None or not (best.is_open or best.extent.holds(offset)):
        return None
    return Here(root, best.path, best.node, best.is_key, best.extent)


def document_at(text: Text, offset: int) -> MappingNode | None:
    """The document that a cursor is in."""
    documents, _ = read_stream(text.data, "document")
    found = None
    for root in (one for document in documents for one in implied(document.root)):
        if isinstance(root, MappingNode) and (
            found is None or text.offset_of(root.place) <= offset
        ):
            found = root
    return found


def type_of(root: MappingNode) -> str:
    """What the document's `type:` says; empty when it does not."""
    node = root.get("type")
    return node.raw if isinstance(node, ScalarNode) else ""


def _spots(node: Node, path: tuple[str | int, ...], text: Text) -> Iterator[_Spot]:
    if isinstance(node, ScalarNode):
        extent = text.extent_of(node.place)
        is_open = node.place.length == 1 and (len(node.raw) > 1 or node.style in {"|", ">"})
        yield _Spot(extent, path, node, False, bool(node.style or node.raw) and is_open)
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from _spots(item, (*path, number), text)
    else:
        for key, value in node.entries:
            below = (*path, key.raw)
            yield _Spot(text.extent_of(key.place), below, value, True, False)
            yield from _spots(value, below, text)


# Letters only, so that it ends no scalar; nobody has written it before.
_MARKER = "fleetformcursorfleetform"
_BEGINS = re.compile(r"^---(?=\s|$)", re.MULTILINE)
# In an open quote or bracket nothing of the last text was read yet: it is closed then.
_ENDINGS = ("", '"', "'")
_TYPE = re.compile(r"^type:[ \t]*['\"]?([a-z-]+)", re.MULTILINE)


class Typing(NamedTuple):
    """
    Attributes:
        path: Where in the document the text being typed stands.
        typed: That text up to the cursor.
        type: The document's, wherever in the document it says so.
    """

    path: tuple[str | int, ...]
    typed: str
    type: str

    @property
    def expression(self) -> str | None:
        """What stands behind an `${{` that is still open, or None."""
        _, mark, inside = self.typed.rpartition(MARK)
        return inside.lstrip() if mark and "}}" not in inside else None


def typing_at(text: Text, offset: int) -> Typing | None:
    """What is being typed at `offset`; None in comments and where no value can stand."""
    source = text.source
    start = max((found.start() for found in _BEGINS.finditer(source, 0, offset)), default=0)
    following = _BEGINS.search(source, offset)
    whole = source[start : following.start() if following else len(source)]
    type_found = _TYPE.search(whole)
    for ending in _ENDINGS:
        found = _marked(source[start:offset] + _MARKER + ending)
        if found is not None:
            path, raw = found
            return Typing(path, raw.partition(_MARKER)[0], type_found[1] if type_found else "")
    return None


def _marked(prefix: str) -> tuple[tuple[str | int, ...], str] | None:
    documents, _ = read_stream(prefix.encode("utf-8", "replace"), "document")
    for document in reversed(documents):
        for path, node in scalars(document.root):
            if _MARKER in node.raw:
                return path, node.raw
    return None
