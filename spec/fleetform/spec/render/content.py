"""
Resolve the documents of a tree for readers who have neither the environment's values nor its folders.

Documents are taken before they are read as their kinds. Values are filled in, and files are named
from the environment's folder. Everything else stays as it is written: elements of a sweep are not
written out, and a secret is named and never shown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec import interpolate
from fleetform.spec.desired import Loaded
from fleetform.spec.kinds.files import split_paths
from fleetform.spec.names import EXPRESSION_MARK
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode
from fleetform.spec.overlay.documents import origin
from fleetform.spec.overlay.profiles import TYPE as PROFILE
from fleetform.spec.overlay.targets import Address, address
from fleetform.spec.tree.elements import TEXTS

__all__ = ["Content", "Resulting", "ResultingDocument", "load_resulting", "self_contained"]


class ResultingDocument(NamedTuple):
    """A document with all that it inherits; `file` is where its own text lies."""

    address: Address
    file: str
    node: Node


@dataclass(frozen=True, slots=True)
class Resulting:
    """
    What a tree comes to.

    Attributes:
        loaded: The same tree, read: with its findings.
        documents: In the order of the tree, a base's first. Profiles are parts of the runs that
            name them by now, and not among them.
        values: What `${{ values.x }}` stands for.
        patch_files: Where patches were written.
    """

    loaded: Loaded
    documents: tuple[ResultingDocument, ...]
    values: Mapping[str, Any]
    patch_files: frozenset[str]


def load_resulting(root: Path, *, buffers: Mapping[str, bytes] | None = None) -> Resulting:
    """
    Read the environment in the folder `root`, or the base that it is.

    `buffers` are as for `load_tree`: what stands for a file's content.
    """
    from fleetform.spec.tree.load import Loader

    with closing(Loader(Path(root), None, buffers)) as loader:
        loaded = loader.load()
        documents = []
        for file, node in loader.written():
            found = address(node)
            if found is not None and found.kind != PROFILE:
                documents.append(ResultingDocument(found, file, node))
        environments = loader.environments
        patches = {
            patch.content_file for folder in environments.folders for patch in folder.patches
        }
        return Resulting(loaded, tuple(documents), environments.values, frozenset(patches))


_NAMESPACE = "values"
_FILES = "files"


class Content(NamedTuple):
    """A document, and by the identity of its nodes the names of values that were filled in."""

    node: Node
    named: Mapping[int, tuple[str, ...]]


def self_contained(node: Node, file: str, *, is_run: bool, values: Mapping[str, Any]) -> Content:
    """
    The document that means the same in the environment's own folder, without its values.

    Args:
        node: A document of the tree.
        file: Where its own text lies.
        is_run: Whether it is a run, whose texts are filled in as texts.
        values: The environment's.
    """
    filler = _Filler(values)
    if not isinstance(node, MappingNode):
        return Content(node, {})
    entries = []
    for key, value in node.entries:
        is_text = is_run and key.raw in TEXTS
        moved = _from_the_root(value, file) if is_run and key.raw == _FILES else value
        entries.append((key, filler.filled(moved, native=not is_text)))
    return Content(MappingNode(tuple(entries), node.place), filler.named)


class _Filler:
    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self.named: dict[int, tuple[str, ...]] = {}

    def filled(self, node: Node, *, native: bool) -> Node:
        if not self._values:
            return node
        if isinstance(node, ScalarNode):
            return self._scalar(node, native=native)
        if isinstance(node, SequenceNode):
            items = tuple(self.filled(item, native=native) for item in node.items)
            return SequenceNode(items, node.place)
        entries = ((key, self.filled(value, native=native)) for key, value in node.entries)
        return MappingNode(tuple(entries), node.place)

    def _scalar(self, node: ScalarNode, *, native: bool) -> ScalarNode:
        if not isinstance(node.value, str) or EXPRESSION_MARK not in node.value:
            return node
        found = interpolate.references(interpolate.compile_value(node.value))
        named = tuple(dict.fromkeys(name for _, (one, name) in found if one == _NAMESPACE))
        if not named:
            return node
        filled = node._replace(
            value=interpolate.fill(node.value, _NAMESPACE, self._values, native=native)
        )
        self.named[id(filled)] = named
        return filled


def _from_the_root(node: Node, file: str) -> Node:
    if isinstance(node, SequenceNode):
        return SequenceNode(tuple(_moved(item, file) for item in node.items), node.place)
    return _moved(node, file)


def _moved(entry: Node, file: str) -> Node:
    """An entry of `files:`, named from the environment's folder."""
    if isinstance(entry, MappingNode):
        path = entry.get("local_path")
        if not isinstance(path, ScalarNode) or not isinstance(path.value, str):
            return entry
        return _moved_mapping(entry, path, path.value, file)
    folder = posixpath.dirname(origin(entry, file))
    if not isinstance(entry, ScalarNode) or not isinstance(entry.value, str) or not folder:
        return entry
    local, there = split_paths(entry.value)
    return entry._replace(value=f"{_joined(folder, local)}:{there or posixpath.normpath(local)}")


def _moved_mapping(entry: MappingNode, path: ScalarNode, local: str, file: str) -> Node:
    folder = posixpath.dirname(origin(path, file))
    if not folder:
        return entry
    moved = path._replace(value=_joined(folder, local))
    entries = [(key, moved if key.raw == "local_path" else value) for key, value in entry.entries]
    if entry.get("path") is None:
        there = posixpath.normpath(local)
        key = ScalarNode("path", "path", "", path.place)
        entries.append((key, ScalarNode(there, there, "", path.place)))
    return MappingNode(tuple(entries), entry.place)


def _joined(folder: str, local: str) -> str:
    return posixpath.normpath(f"{folder}/{local}")
