"""
Where in a text its `${{ … }}` stand.

`interpolate` reads the values of texts, in which YAML's quotes, escapes and folded lines are
gone; an editor needs the places. So the texts say which expressions there are, and the source
is searched for the same ones in the same order. Where the two disagree (an expression spelled
with escapes) there is none to show, and nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from fleetform.lsp.text import Extent, Text
from fleetform.spec.interpolate import MARK
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode

__all__ = ["Expression", "expressions"]

_EXPRESSION = re.compile(
    r"(?P<escape>\$?)\$\{\{(?:\s*(?P<space>[A-Za-z_]+)\.(?P<key>[A-Za-z_][A-Za-z0-9_-]*)\s*\}\})?",
    re.ASCII,
)


class Expression(NamedTuple):
    """One `${{ namespace.key }}`: the whole of it, and its key alone."""

    namespace: str
    key: str
    whole: Extent
    key_extent: Extent


def expressions(root: Node, text: Text) -> Iterator[Expression]:
    """Every expression of a document, in its order; an anchored text is told once."""
    seen: set[int] = set()
    for scalar in _texts(root):
        start = text.offset_of(scalar.place)
        if start not in seen:
            seen.add(start)
            yield from _in_scalar(scalar, text, start)


def _texts(node: Node) -> Iterator[ScalarNode]:
    if isinstance(node, ScalarNode):
        if MARK in node.raw:
            yield node
    elif isinstance(node, SequenceNode):
        for item in node.items:
            yield from _texts(item)
    elif isinstance(node, MappingNode):
        for _, value in node.entries:
            yield from _texts(value)


def _in_scalar(scalar: ScalarNode, text: Text, start: int) -> Iterator[Expression]:
    meant = _EXPRESSION.finditer(scalar.raw)
    written = _EXPRESSION.finditer(text.source, start)
    for one in meant:
        found = next(written, None)
        if found is None or found.groups() != one.groups():
            return
        if one["key"] and not one["escape"]:
            yield Expression(
                one["space"],
                one["key"],
                Extent(found.start() + len(found["escape"]), found.end()),
                Extent(found.start("key"), found.end("key")),
            )
