"""
What a YAML document says and where it says it, as values.

`documents` builds these nodes from bytes; the kinds and checks read them to turn a field path
into a line and a column. A node knows its position but not its file: ten thousand documents
share one file name, and a node is kept small. An alias of a collection is the anchored node
itself, so a node can be reached by several paths, and nothing is copied however often.

Nodes are named tuples and not dataclasses: a tree of ten thousand documents has some hundred
thousand of them, and a frozen dataclass takes more than twice as long to make (measured: 0.75 µs
against 0.29 µs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from fleetform.spec.findings import Place

__all__ = [
    "ForeignSpan",
    "MappingNode",
    "Node",
    "Path",
    "ScalarNode",
    "SequenceNode",
    "Span",
    "child",
    "lookup",
    "plain",
    "scalars",
    "spot",
]

Scalar: TypeAlias = str | int | float | bool | None
Path: TypeAlias = Sequence[str | int]


class Span(NamedTuple):
    """
    Where a node starts, as people and editors count: from 1, columns in characters.

    `length` is how many characters a caret line underlines: the whole scalar where it stands on
    one line, else 1.
    """

    line: int
    column: int
    length: int = 1

    def in_file(self, file: str) -> Place:
        return Place(file, self.line, self.column, self.length)


class ForeignSpan(Span):
    """The span of a node that another file than its document's brings in: an overlay's."""

    file: str

    @classmethod
    def of(cls, span: Span, file: str) -> ForeignSpan:
        made = cls(*span)
        made.file = file
        return made

    def in_file(self, file: str) -> Place:
        """The place in the node's own file."""
        return Place(self.file, self.line, self.column, self.length)


class ScalarNode(NamedTuple):
    """
    A single value.

    Attributes:
        value: What it means: only an unquoted scalar is ever anything else than text.
        raw: What is written, without quotes and escapes. As a key this is what names the field,
            so that `1:` and `"1":` are the same field.
        style: The quote or block indicator: `'`, `"`, `|` or `>`; empty when plain.
        place: Of its first character, the quote included.
    """

    value: Scalar
    raw: str
    style: str
    place: Span


class SequenceNode(NamedTuple):
    """A list. `place` is that of its first item's dash, or of its bracket."""

    items: tuple[Node, ...]
    place: Span


class MappingNode(NamedTuple):
    """
    A mapping in the order written. No two keys have the same `raw`.

    What a merge key (`<<`) brings stands behind the mapping's own entries, with the places of
    where it was written.
    """

    entries: tuple[tuple[ScalarNode, Node], ...]
    place: Span

    def get(self, name: str) -> Node | None:
        """Return the value of the field `name`, or None when the mapping has no such field."""
        return next((value for key, value in self.entries if key.raw == name), None)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


def plain(node: Node) -> Any:
    """
    Return what the node says as JSON has it: dict, list, str, int, float, bool, None.

    Keys are always text. Recursion is as deep as the document, which `documents` bounds.
    """
    if isinstance(node, ScalarNode):
        return node.value
    if isinstance(node, SequenceNode):
        return [plain(item) for item in node.items]
    return {key.raw: plain(value) for key, value in node.entries}


def scalars(
    node: Node, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], ScalarNode]]:
    """Each value of a document that is no collection, with its path, in the order written."""
    if isinstance(node, ScalarNode):
        yield path, node
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield from scalars(item, (*path, number))
    else:
        for key, value in node.entries:
            yield from scalars(value, (*path, key.raw))


def child(node: Node, step: str | int) -> tuple[Span, Node] | None:
    """
    Return the place of the key or item that `step` names, and the node it leads to.

    A number also names a field written as one (`1: x`), as a path of text does in a list
    (`"0"`): error locations of libraries do not tell the two apart. The first entry of what is
    no list is that itself: `cron: "@daily"` is a list of one.
    """
    if isinstance(node, ScalarNode):
        return (node.place, node) if step == 0 else None
    if isinstance(node, MappingNode):
        name = str(step)
        for key, value in node.entries:
            if key.raw == name:
                return key.place, value
    elif isinstance(node, SequenceNode):
        if isinstance(step, str) and not (step.isascii() and step.isdigit() and len(step) < 10):
            return None
        index = int(step)
        if 0 <= index < len(node.items):
            item = node.items[index]
            return item.place, item
    return None


def spot(node: Node, path: Path, *, of: Literal["key", "value"] = "value") -> Span:
    """
    Return where the field at `path` stands, as far as the document goes along with the path.

    Args:
        node: A document's root, or any part of it.
        path: Keys and indices from `node`. Steps that name no field of the document are passed
            over: error locations contain names of types as well (`("gpu", "GpuFields", "count")`),
            and a missing field is best shown at the key of the mapping that lacks it.
        of: What to point at, the field's key or its value. A mapping or a block list has no
            better place than its key, so for these it is the key in either case.
    """
    key_place, found, matched_last = node.place, node, not path
    for step in path:
        following = child(found, step)
        matched_last = following is not None
        if following is not None:
            key_place, found = following
    if of == "value" and matched_last and isinstance(found, ScalarNode):
        return found.place
    return key_place


def lookup(
    node: Node, path: Path, *, file: str = "", of: Literal["key", "value"] = "value"
) -> Place:
    """Return `spot` as a place in `file`."""
    return spot(node, path, of=of).in_file(file)
