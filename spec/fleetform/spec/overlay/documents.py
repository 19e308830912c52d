"""
Hold documents on their way through the overlays, where each part was written, and how large it is.

Nodes of one file that become part of a document of another remember where they are from. A kilobyte
of aliases or of steps can mean billions of values, so they are counted before they are there, and in
time of what is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from fleetform.spec.findings import Problem
from fleetform.spec.nodes import ForeignSpan, MappingNode, Node, ScalarNode, SequenceNode, Span

if TYPE_CHECKING:
    from fleetform.spec.overlay.operations import Operation
__all__ = [
    "DEPTH_MAX",
    "VALUES_MAX",
    "WORK_MAX",
    "Layer",
    "Mistake",
    "Patch",
    "Written",
    "depth_of",
    "foreign",
    "is_foreign",
    "origin",
    "size_of",
    "span",
]


@dataclass(frozen=True, slots=True)
class Written:
    """
    One document.

    Attributes:
        file: Where it lies, relative to the environment's folder; parts of it that were
            written elsewhere have their own (`nodes.ForeignSpan`).
        own: What the environment's own tree says of it, before anything inherited; None for
            a document of a base.
        is_spoiled: Something inherited does not fit it, so nobody can tell what it means.
    """

    file: str
    node: Node
    own: Node | None
    is_spoiled: bool = False

    @property
    def is_inherited(self) -> bool:
        """Whether it means anything else than its own text says."""
        return self.own is not self.node

    def spoiled(self) -> Written:
        return replace(self, is_spoiled=True)


class Mistake(NamedTuple):
    """
    A problem and the document that it is in: one of the tree, an environment's, a patch.

    `is_general`: nobody can tell which documents are meant, so none of them can be trusted. Else
    those that are meant are spoiled.
    """

    file: str
    node: Node
    problem: Problem
    is_general: bool = False


@dataclass(frozen=True, slots=True)
class Patch:
    """
    One entry of `patches:`; one of `merge`, `operations` and `is_deletion` says what it does.

    Attributes:
        file: Of the environment's document that it stands in, which is `node`.
        number: Its position there.
        content_file: Where its steps stand: in that document, or in a file of their own.
        content: That file's document; `content_path` leads to the steps from there.
    """

    file: str
    node: Node
    number: int
    target: str
    content_file: str
    content: Node
    content_path: tuple[str | int, ...] = ()
    merge: MappingNode | None = None
    operations: tuple[Operation, ...] = ()
    is_deletion: bool = False


class Layer(NamedTuple):
    """An environment's tree or a base's: its documents, and what it changes of those below."""

    documents: tuple[Written, ...]
    patches: tuple[Patch, ...]


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
