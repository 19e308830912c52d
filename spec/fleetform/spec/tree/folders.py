"""
Where the files that a document names are looked for: in the folder of whoever named them.
"""

from __future__ import annotations

from fleetform.spec.nodes import MappingNode, Node, SequenceNode
from fleetform.spec.overlay.foreign import is_foreign, origin

__all__ = ["folder_of"]


def folder_of(node: Node, file: str) -> str | tuple[str, ...]:
    """
    The folder of a document's file, relative to the environment's.

    One for each entry of its `files:`, where a patch or a profile wrote some of them.
    """
    listed = node.get("files") if isinstance(node, MappingNode) else None
    if listed is None or not is_foreign(listed):
        return _folder(file)
    items = listed.items if isinstance(listed, SequenceNode) else (listed,)
    return tuple(_folder(origin(_named(item), file)) for item in items)


def _named(item: Node) -> Node:
    """What says the path: an entry itself, or its `local_path`."""
    path = item.get("local_path") if isinstance(item, MappingNode) else None
    return item if path is None else path


def _folder(file: str) -> str:
    return file.rpartition("/")[0]
