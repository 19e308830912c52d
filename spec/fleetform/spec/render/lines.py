"""
Nodes to YAML, one value a line, each with a remark behind it where there is one to make.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.syntax.emit import literal_lines, scalar_text

__all__ = ["Remark", "document_lines"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)

Remark = Callable[[Node], str]
"""What to say of a value that stands on its line alone: a scalar, an empty list or mapping."""


def document_lines(node: Node, remark: Remark) -> Iterator[str]:
    """The lines of a document, in block style."""
    first, below = _value(node, remark)
    yield from [first, *_indented(below)] if first else below


def _mapping(node: MappingNode, remark: Remark) -> Iterator[str]:
    for key, value in node.entries:
        name = _name(key)
        first, below = _value(value, remark)
        yield f"{name}: {first}" if first else f"{name}:"
        yield from _indented(below)


def _name(key: ScalarNode) -> str:
    """A key as it was written: `on:` is what people know, and a key is text whatever it says."""
    return key.raw if not key.style and _WORD.fullmatch(key.raw) else scalar_text(key.raw)


def _sequence(node: SequenceNode, remark: Remark) -> Iterator[str]:
    for item in node.items:
        first, below = _value(item, remark)
        if not first:
            # What stands below a dash begins beside it.
            first, *below = below
        yield f"- {first}"
        yield from _indented(below)


def _value(node: Node, remark: Remark) -> tuple[str, list[str]]:
    """What stands on the line of the key, empty for none, and what stands below it."""
    if isinstance(node, MappingNode) and node.entries:
        return "", list(_mapping(node, remark))
    if isinstance(node, SequenceNode) and node.items:
        return "", list(_sequence(node, remark))
    said = remark(node)
    behind = f"  # {said}" if said else ""
    if not isinstance(node, ScalarNode):
        return ("{}" if isinstance(node, MappingNode) else "[]") + behind, []
    if isinstance(node.value, str) and "\n" in node.value:
        header, *text = literal_lines(node.value) or [""]
        if header:
            return header + behind, text
    return scalar_text(node.value) + behind, []


def _indented(lines: Iterable[str]) -> Iterator[str]:
    # Nothing stands on an empty line, so that editors have no blanks to take away.
    return (f"  {line}" if line else "" for line in lines)
