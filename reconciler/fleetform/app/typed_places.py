"""
Where a person wrote what a submitted document says: a line of FILE, or an option.

`submit` writes a document of its own, and findings about it name its lines. A person has never seen
that file, so each finding is moved to the field that FILE has under the same path, or to the option
that set it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from fleetform.app.scripts import is_document
from fleetform.app.submitted_document import Setting
from fleetform.spec.documents import read_documents
from fleetform.spec.findings import Finding, Place
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span, spot

__all__ = ["TypedPlaces"]

_Steps: TypeAlias = tuple[str | int, ...]


class TypedPlaces:
    """Moves findings about one submitted document."""

    def __init__(self, source: Path, file: str, text: str, settings: Sequence[Setting]) -> None:
        """
        Args:
            source: FILE, as typed.
            file: The document, relative to the tree.
            text: Of the document.
            settings: Of the command line.
        """
        self._source = source
        self._file = file
        self._node = _root(text)
        self._settings = [one for one in settings if one.option]
        # A script has no fields with lines.
        self._written = source.read_text("utf-8") if is_document(source) else ""
        self._original = _root(self._written)

    def moved(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings about the document where a person can correct them; drop all others."""
        return tuple(self._move(one) for one in findings if one.place.file == self._file)

    def _move(self, finding: Finding) -> Finding:
        path, is_key = _path_at(self._node, finding.place.line, finding.place.column)
        if option := self._option(path, finding):
            return replace(finding, place=Place(option), text="")
        if self._original is None:
            return replace(finding, place=Place(str(self._source)), text="")
        span = spot(self._original, path, of="key" if is_key else "value")
        line = self._written.splitlines()[span.line - 1]
        return replace(finding, place=span.in_file(str(self._source)), text=finding.text and line)

    def _option(self, path: _Steps, finding: Finding) -> str:
        for one in self._settings:
            if path[: len(one.path)] == one.path:
                return one.option
        # What is wrong with one variable is shown at `env`, and `env` may be a list.
        for one in self._settings:
            if path[:1] == one.path[:1] and f"`{one.path[-1]}`" in finding.detail:
                return one.option
        return ""


def _root(text: str) -> Node | None:
    nodes, _ = read_documents(text.encode(), "")
    return nodes[0] if nodes else None


def _path_at(node: Node | None, line: int, column: int) -> tuple[_Steps, bool]:
    """Return the field at a place, or the last one before it, and whether its key is there."""
    before = [
        (span[:2], path, is_key)
        for path, span, is_key in (() if node is None else _spans(node, ()))
        if span[:2] <= (line, column)
    ]
    if not before:
        return (), False
    # Of those at one place, the first is the outer one.
    _span, path, is_key = max(before, key=lambda one: one[0])
    return path, is_key


def _spans(node: Node, path: _Steps) -> Iterator[tuple[_Steps, Span, bool]]:
    """Yield the keys and values below a node, each with its path, in the order of the text."""
    if isinstance(node, MappingNode):
        for key, value in node.entries:
            yield (*path, key.raw), key.place, True
            if isinstance(value, ScalarNode):
                yield (*path, key.raw), value.place, False
            yield from _spans(value, (*path, key.raw))
    elif isinstance(node, SequenceNode):
        for number, item in enumerate(node.items):
            yield (*path, number), item.place, False
            yield from _spans(item, (*path, number))
