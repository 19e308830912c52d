"""
What an environment comes to with its base, its patches and its profiles, written out.

The documents are valid input again and declare the same resources: with values filled in and
profiles merged, they need no `environment.yaml` that says more than a name and a uid. Files of a
base are named from the environment's folder, where a tree of its own would have to hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fleetform.spec.desired import Loaded
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, plain
from fleetform.spec.overlay.pointer import written as pointer_text
from fleetform.spec.overlay.targets import Address, matches
from fleetform.spec.render.content import Content, ResultingDocument, load_resulting, self_contained
from fleetform.spec.render.lines import Origins, Teller, document_lines

__all__ = ["Origins", "Rendered", "RenderedDocument", "render_tree"]


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
