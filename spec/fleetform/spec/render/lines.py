"""
Write nodes as YAML, one value a line, with a comment behind it that says where it was written.

Places are named as `../base/train.yaml:7` or `environment.yaml:12 patch`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from fleetform.spec.nodes import ForeignSpan, MappingNode, Node, ScalarNode, SequenceNode, Span
from fleetform.spec.syntax.emit import block_lines, scalar_text

__all__ = ["Origins", "Remark", "Teller", "document_lines"]


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
