"""
Nodes of one file that become part of a document of another, and remember where they are from.
"""

from __future__ import annotations

from fleetform.spec.nodes import ForeignSpan, MappingNode, Node, ScalarNode, SequenceNode, Span

__all__ = ["foreign", "is_foreign", "origin", "span"]


def foreign(node: Node, file: str) -> Node:
    """
    The same node with places in `file`; what is from a third file already stays so.

    What an alias repeats is made once, and so a kilobyte of aliases stays one.
    """
    return _foreign(node, file, {})


def _foreign(node: Node, file: str, made: dict[int, Node]) -> Node:
    known = made.get(id(node))
    if known is not None:
        return known
    place = span(node.place, file)
    result: Node
    if isinstance(node, ScalarNode):
        result = node._replace(place=place)
    elif isinstance(node, SequenceNode):
        result = SequenceNode(tuple(_foreign(item, file, made) for item in node.items), place)
    else:
        entries = (
            (key._replace(place=span(key.place, file)), _foreign(value, file, made))
            for key, value in node.entries
        )
        result = MappingNode(tuple(entries), place)
    made[id(node)] = result
    return result


def span(place: Span, file: str) -> Span:
    """The span in `file`, where it is not in another one already."""
    return place if isinstance(place, ForeignSpan) else ForeignSpan.of(place, file)


def origin(node: Node, file: str) -> str:
    """The file that `node` was written in, being part of a document in `file`."""
    return node.place.file if isinstance(node.place, ForeignSpan) else file


def is_foreign(node: Node) -> bool:
    """Whether any part of `node` was written in another file than its document."""
    return _is_foreign(node, set())


def _is_foreign(node: Node, seen: set[int]) -> bool:
    if isinstance(node.place, ForeignSpan):
        return True
    if isinstance(node, ScalarNode) or id(node) in seen:
        return False
    seen.add(id(node))
    if isinstance(node, SequenceNode):
        return any(_is_foreign(item, seen) for item in node.items)
    return any(
        isinstance(key.place, ForeignSpan) or _is_foreign(value, seen)
        for key, value in node.entries
    )
