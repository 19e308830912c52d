"""
What an environment comes to with its base, its patches and its profiles, written out.

The documents are valid input again and declare the same resources: with values filled in and
profiles merged, they need no `environment.yaml` that says more than a name and a uid. Files of a
base are named from the environment's folder, where a tree of its own would have to hold them.
"""

from __future__ import annotations

import enum
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec import interpolate
from fleetform.spec.desired import Loaded
from fleetform.spec.kinds.files import split_paths
from fleetform.spec.names import EXPRESSION_MARK
from fleetform.spec.nodes import (
    ForeignSpan,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Span,
    plain,
)
from fleetform.spec.overlay.documents import origin
from fleetform.spec.overlay.layers import Address, address, matches
from fleetform.spec.overlay.operations import written as pointer_text
from fleetform.spec.overlay.profiles import TYPE as PROFILE
from fleetform.spec.syntax.emit import block_lines, scalar_text
from fleetform.spec.tree.elements import TEXTS

__all__ = [
    "Content",
    "Origins",
    "Remark",
    "Rendered",
    "RenderedDocument",
    "Resulting",
    "ResultingDocument",
    "Teller",
    "document_lines",
    "load_resulting",
    "render_tree",
    "self_contained",
]


# Write nodes as YAML, one value a line, with a comment behind it that says where it was written.
#
# Places are named as `../base/train.yaml:7` or `environment.yaml:12 patch`.


class Origins(enum.StrEnum):
    """Which values say where they are from."""

    NONE = "none"
    INHERITED = "inherited"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Teller:
    """
    Says it for the values of one document.

    Attributes:
        file: The document's own.
        is_base: The document is a base's, so that its own text is inherited too.
        patch_files: Files in which patches are written.
    """

    wanted: Origins
    file: str
    is_base: bool
    patch_files: Collection[str]

    def origin(self, place: Span, *, values: Collection[str] = ()) -> str:
        """
        Where the value at `place` is from; empty where origins are not shown.

        `values` are names of the environment's values that stand in it.
        """
        if self.wanted is Origins.NONE:
            return ""
        named = [f"values.{name}" for name in values]
        if isinstance(place, ForeignSpan):
            return ", ".join([f"{place.file}:{place.line} {self._way(place.file)}", *named])
        if self.is_base or self.wanted is Origins.ALL:
            return ", ".join([f"{self.file}:{place.line}", *named])
        return ", ".join(named)

    def _way(self, file: str) -> str:
        return "patch" if file in self.patch_files else "profile"


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
    if not isinstance(node.value, str) or "\n" not in node.value:
        return scalar_text(node.value) + behind, []
    first, below = block_lines(node.value)
    return first + behind, [line.removeprefix("  ") for line in below]


def _indented(lines: Iterable[str]) -> Iterator[str]:
    # Nothing stands on an empty line, so that editors have no blanks to take away.
    return (f"  {line}" if line else "" for line in lines)


# Resolve the documents of a tree for readers who have neither the environment's values nor its folders.
#
# Documents are taken before they are read as their kinds. Values are filled in, and files are named
# from the environment's folder. Everything else stays as it is written: elements of a sweep are not
# written out, and a secret is named and never shown.


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


class RenderedDocument(NamedTuple):
    """One document as it comes out; `file` and `line` are where its own text begins."""

    address: Address
    file: str
    line: int
    content: Content
    teller: Teller

    def yaml(self) -> str:
        """Its text, without what separates it from others."""
        head = [] if self.teller.wanted is Origins.NONE else [f"# {self.file}:{self.line}"]
        lines = document_lines(self.content.node, self._origin)
        return "".join(f"{line}\n" for line in (*head, *lines))

    def json(self) -> dict[str, Any]:
        """The document, where it is from, and by pointer where each value is from."""
        return {
            "document": plain(self.content.node),
            "file": self.file,
            "line": self.line,
            "origins": dict(self._origins(self.content.node, ())),
        }

    def _origin(self, node: Node) -> str:
        return self.teller.origin(node.place, values=self.content.named.get(id(node), ()))

    def _origins(self, node: Node, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        inner = list(_inner(node))
        for step, value in inner:
            yield from self._origins(value, (*path, step))
        if not inner and (said := self._origin(node)):
            yield pointer_text(path), said


class Rendered(NamedTuple):
    """
    What a tree comes to.

    Attributes:
        loaded: The tree as it was read; with an error nothing is rendered.
        documents: Those that were asked for.
        names: All that could have been asked for: `run/train`.
    """

    loaded: Loaded
    documents: tuple[RenderedDocument, ...]
    names: tuple[str, ...]


def render_tree(
    root: Path, names: Sequence[str] = (), *, origins: Origins = Origins.INHERITED
) -> Rendered:
    """
    Render the environment in the folder `root`, or the base that it is.

    Args:
        root: The folder of `environment.yaml`.
        names: `run/train`, `train`, `fleet/gpu-*`; all documents if there are none.
        origins: Which values say where they were written.
    """
    resulting = load_resulting(root)
    if resulting.loaded.errors:
        return Rendered(resulting.loaded, (), ())
    targets = [name if "/" in name else f"*/{name}" for name in names]
    wanted = [
        _render(one, resulting.values, resulting.patch_files, origins)
        for one in resulting.documents
        if not targets or any(matches(target, one.address) for target in targets)
    ]
    known = tuple(sorted(str(one.address) for one in resulting.documents))
    return Rendered(resulting.loaded, tuple(wanted), known)


def _render(
    one: ResultingDocument,
    values: Mapping[str, Any],
    patch_files: frozenset[str],
    origins: Origins,
) -> RenderedDocument:
    content = self_contained(one.node, one.file, is_run=one.address.kind == "run", values=values)
    # What lies in a base is seen from the environment's folder.
    is_base = one.file.startswith("../")
    teller = Teller(origins, one.file, is_base, patch_files)
    return RenderedDocument(one.address, one.file, one.node.place.line, content, teller)


def _inner(node: Node) -> Iterator[tuple[str, Node]]:
    if isinstance(node, SequenceNode):
        yield from ((str(number), item) for number, item in enumerate(node.items))
    elif isinstance(node, MappingNode):
        yield from ((key.raw, value) for key, value in node.entries)
    else:
        assert isinstance(node, ScalarNode), node
