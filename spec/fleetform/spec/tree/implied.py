"""
Files of dstack that are lists of documents: `projects:` of a server's config, `profiles:`.

Such a file has no `type`. Each entry of its list is read as a document of its own, of the type
that the list implies, and keeps its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode

IMPLIED_TYPES: Mapping[str, str] = {"projects": "project", "profiles": "profile"}
"""By the only field of such a file: the type of what it lists."""


def implied(node: Node) -> Iterator[Node]:
    """The documents that `node` is: itself, or the entries of its only field."""
    if not isinstance(node, MappingNode) or len(node.entries) != 1:
        yield node
        return
    key, listed = node.entries[0]
    if key.raw not in IMPLIED_TYPES or not isinstance(listed, SequenceNode):
        yield node
        return
    for item in listed.items:
        yield _typed(item, IMPLIED_TYPES[key.raw], key)


def _typed(item: Node, type_name: str, key: ScalarNode) -> Node:
    if not isinstance(item, MappingNode) or item.get("type") is not None:
        return item
    field = ScalarNode("type", "type", "", key.place)
    return MappingNode(
        ((field, ScalarNode(type_name, type_name, "", key.place)), *item.entries), item.place
    )
