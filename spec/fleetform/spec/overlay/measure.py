"""
How large documents may become by what is done to them.

A kilobyte of aliases or of steps can mean billions of values, so they are counted before they are
there, and in time of what is written.
"""

from __future__ import annotations

from collections.abc import Callable

from fleetform.spec.nodes import Node, ScalarNode, SequenceNode

__all__ = ["DEPTH_MAX", "VALUES_MAX", "WORK_MAX", "depth_of", "size_of"]

# The same as one file may have (`bounds.Limits`): each `copy` may double a document, and forty
# of them would be a terabyte.
VALUES_MAX = 400_000
DEPTH_MAX = 64
WORK_MAX = 1_000_000
"""
Values that all patches put into all documents, and all profiles: a hundred into each of ten
thousand, which takes five seconds and a hundred megabytes.
"""


def size_of(node: Node) -> int:
    """How many values a node is, what is repeated counted each time, in time of what there is."""
    return _measure(node, {}, lambda sizes: 1 + sum(sizes))


def depth_of(node: Node) -> int:
    return _measure(node, {}, lambda depths: 1 + max(depths, default=0))


def _measure(node: Node, known: dict[int, int], of: Callable[[list[int]], int]) -> int:
    if isinstance(node, ScalarNode):
        return 1
    found = known.get(id(node))
    if found is None:
        inner = (
            node.items
            if isinstance(node, SequenceNode)
            else tuple(value for _, value in node.entries)
        )
        found = known[id(node)] = of([_measure(one, known, of) for one in inner])
    return found
