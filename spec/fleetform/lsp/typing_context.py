"""
What is being typed at a cursor: the field it stands in, or the expression.

The text up to the cursor, with a marker for what comes next, is read by the same reader as all
documents. It ends in the middle, so it is broken as often as not; the reader gives what it has
read by then, and the marker is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fleetform.lsp.text import Text
from fleetform.spec.interpolate import MARK
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.syntax import read_stream

__all__ = ["Typing", "typing_at"]

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
        for path, node in _values(document.root, ()):
            if _MARKER in node.raw:
                return path, node.raw
    return None


def _values(
    node: Node, path: tuple[str | int, ...]
) -> Iterator[tuple[tuple[str | int, ...], ScalarNode]]:
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from _values(item, (*path, number))
    elif isinstance(node, MappingNode):
        for key, value in node.entries:
            yield from _values(value, (*path, key.raw))
