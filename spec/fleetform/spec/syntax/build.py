"""
Events of libyaml to nodes of one document.

The builder keeps its own stack, so that depth costs no recursion, and decides all that is not
grammar: what anchors, merge keys and tags mean, and that a key stands once. It goes on after a
mistake wherever something sensible is left to read; only a bound that is crossed ends it.
"""

from __future__ import annotations

import math
import re
from typing import Final

from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceStartEvent,
)

from fleetform.spec.bounds import Limits
from fleetform.spec.findings import Finding, Level
from fleetform.spec.nodes import MappingNode, Node, ScalarNode, SequenceNode, Span

__all__ = ["NUMBER_STARTS", "WORDS", "BuildStoppedError", "Builder", "OutOfRangeError", "number"]


# What an unquoted scalar means, by `WORDS` and `number`: the core schema of YAML 1.2, within what can be stored.
#
# So `yes`, `no`, `on` and `off` are text, as is `12:30:00`, which YAML 1.1 counts in sixties,
# and `2024-01-31`. https://yaml.org/spec/1.2.2/#103-core-schema

NUMBER_STARTS = frozenset("+-.0123456789")
"""The first characters of all numbers."""

WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_NUMBER = re.compile(
    r"(?P<int>[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)"
    r"|(?P<real>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_INT_MAX = 2**63 - 1
# The longest spelling of a number that fits: 64 binary digits, or a float's 17 with an exponent;
# the rest is room for zeros. Python's int() takes quadratic time and refuses 4300 digits.
_LENGTH_MAX = 400
# Fewer digits than this are less than 64 bits.
_DIGITS_SURE = 19


class OutOfRangeError(ValueError):
    """A number that no field can hold: its text is a sentence for people."""


def number(raw: str) -> str | int | float:
    """
    Return the number that the plain scalar `raw` is, or `raw` itself when it is text.

    Raises:
        OutOfRangeError: For infinities, NaN, and integers of more than 64 bits. JSON has none
            of the first two, and the ledger stores none of the third.
    """
    if raw.isdigit() and raw.isascii() and len(raw) < _DIGITS_SURE:
        return int(raw)  # Nearly all numbers are such; the expression takes four times as long.
    match = _NUMBER.fullmatch(raw)
    if match is None:
        return raw
    if match.lastgroup == "int":
        return _integer(raw)
    if match.lastgroup == "real":
        return _real(raw)
    raise OutOfRangeError("It is not a finite number.")


def _integer(raw: str) -> int:
    if len(raw) <= _LENGTH_MAX:
        # `017` is seventeen here. YAML 1.1 takes it for fifteen, which the builder warns of.
        base = {"0o": 8, "0x": 16}.get(raw[:2], 10)
        value = int(raw, base)
        if abs(value) <= _INT_MAX:
            return value
    raise OutOfRangeError("It is a whole number of more than 64 bits, which cannot be stored.")


def _real(raw: str) -> float:
    value = float(raw) if len(raw) <= _LENGTH_MAX else math.inf
    if math.isinf(value):
        raise OutOfRangeError("It is a number too large to be stored.")
    return value + 0.0  # Minus zero becomes zero: one spelling for each value.


_YAML_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS: Final = {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}
_MERGE = "<<"
_NO_NODE = ScalarNode(None, "", "", Span(0, 0))


class BuildStoppedError(Exception):
    """
    A bound is crossed; the finding is already reported.

    `rest` tells whether later documents of the file may still be read.
    """

    def __init__(self, *, rest: bool) -> None:
        super().__init__()
        self.rest = rest


class _Frame:
    """A collection that is being read."""

    __slots__ = (
        "anchor", "entries", "height", "is_mapping", "items", "key", "merged", "nodes_before",
        "place", "seen",
    )  # fmt: skip

    def __init__(self, *, is_mapping: bool, place: Span, anchor: str | None, nodes: int) -> None:
        self.is_mapping = is_mapping
        self.place = place
        self.anchor = anchor
        self.nodes_before = nodes
        self.height = 1
        self.items: list[Node] = []
        self.entries: list[tuple[ScalarNode, Node]] = []
        self.seen: dict[str, ScalarNode] = {}
        self.key: ScalarNode | None = None
        self.merged: list[MappingNode] | None = None

    def node(self) -> Node:
        """Return the collection as far as it was read."""
        if not self.is_mapping:
            return SequenceNode(tuple(self.items), self.place)
        if self.merged:
            self._append_merged(self.merged)
        return MappingNode(tuple(self.entries), self.place)

    def _append_merged(self, merged: list[MappingNode]) -> None:
        # A mapping's own keys win, then the mapping merged first: https://yaml.org/type/merge.html
        for mapping in merged:
            for key, value in mapping.entries:
                if key.raw not in self.seen:
                    self.seen[key.raw] = key
                    self.entries.append((key, value))


class Builder:
    """
    Builds the documents of one file, one after the other.

    `findings` grows as the file is read. The count of nodes runs over the whole file, aliases
    expanded, because that is what any later pass over the nodes may cost.
    """

    def __init__(self, file: str, limits: Limits) -> None:
        self.findings: list[Finding] = []
        self._file = file
        self._limits = limits
        self._nodes = 0
        self._line = 1
        self._frames: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, int, int] | None] = {}
        self._root: Node | None = None

    def begin(self, *, lines_before: int) -> None:
        """Begin a run of events whose first line is line `lines_before + 1` of the file."""
        self._line = lines_before + 1
        self._start_document()

    def take(self, event: Event) -> Node | None:
        """
        Take the next event; return the root when the event ends a document that is not empty.

        Raises:
            BuildStoppedError: A bound is crossed.
        """
        # By type, the commonest first: this is asked some thirty times a document.
        if type(event) is ScalarEvent:
            self._take_scalar(event)
        elif type(event) is MappingStartEvent:
            self._open(event, is_mapping=True)
        elif isinstance(event, CollectionEndEvent):
            self._close()
        elif type(event) is SequenceStartEvent:
            self._open(event, is_mapping=False)
        elif isinstance(event, AliasEvent):
            self._take_alias(event)
        elif isinstance(event, DocumentStartEvent):
            self._start_document()
        elif isinstance(event, DocumentEndEvent):
            return self._finish_document()
        return None

    def partial(self) -> Node | None:
        """Return what was read of a document that breaks off, for telling what it declares."""
        node = self._root
        while self._frames:
            frame = self._frames.pop()
            if node is not None and not frame.is_mapping:
                frame.items.append(node)
            elif node is not None and frame.key is not None and frame.key is not _NO_NODE:
                frame.entries.append((frame.key, node))
            node = frame.node()
        self._start_document()
        return node

    def opened(self) -> Span | None:
        """Return where the innermost collection begins that is not closed yet."""
        return self._frames[-1].place if self._frames else None

    def report(
        self,
        code: str,
        summary: str,
        place: Span,
        detail: str,
        advice: str,
        level: Level = Level.ERROR,
    ) -> None:
        """Add a finding; beyond `findings_max` the file is given up."""
        limit = self._limits.findings_max
        if len(self.findings) == limit:
            self.findings.append(
                Finding(
                    Level.ERROR,
                    "too-many-findings",
                    "The file has more mistakes than are shown",
                    place.in_file(self._file),
                    f"Reading stopped here after {limit} findings.",
                    "Correct the ones above first; they may be the cause of the others.",
                )
            )
        if len(self.findings) > limit:
            raise BuildStoppedError(rest=False)
        self.findings.append(
            Finding(level, code, summary, place.in_file(self._file), detail, advice)
        )

    def _start_document(self) -> None:
        self._frames.clear()
        self._anchors.clear()
        self._root = None

    def _finish_document(self) -> Node | None:
        root = self._root
        self._start_document()
        # `---` with nothing behind it declares nothing and is no mistake.
        is_empty = type(root) is ScalarNode and not root.raw and not root.style
        return None if is_empty else root

    def _take_scalar(self, event: ScalarEvent) -> None:
        raw = event.value
        start, end = event.start_mark, event.end_mark
        assert start is not None
        assert end is not None
        line, column = start.line, start.column
        length = end.column - column if end.line == line and end.column > column else 1
        place = Span(self._line + line, column + 1, length)
        if not raw and not column and self._frames:
            # Nothing stands where the next thing begins, which may be behind the file's end.
            key = self._frames[-1].key
            place = place if key is None else key.place
        value: str | int | float | bool | None = raw
        style: str = ""
        if event.tag is not None:
            style = event.style or ""
            value = self._tagged(event.tag, raw, style, place)
        elif not event.implicit[0]:
            style = event.style or ""
        elif raw in WORDS:
            value = WORDS[raw]
        elif raw[0] in NUMBER_STARTS:
            value = self._number(raw, place)
        node = ScalarNode(value, raw, style, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = (node, 1, 0)
        self._attach(node, 0)

    def _open(self, event: CollectionStartEvent, *, is_mapping: bool) -> None:
        place = self._span(event)
        if len(self._frames) >= self._limits.depth_max:
            self._report_depth(place)
        tag = event.tag
        if tag is not None and tag not in {"!", f"{_YAML_TAG}{'map' if is_mapping else 'seq'}"}:
            self._report_tag(tag, place)
        if event.anchor is not None:
            # An alias that comes before the end of its anchor finds None here.
            self._anchors[event.anchor] = None
        self._count(1, place)
        self._frames.append(
            _Frame(is_mapping=is_mapping, place=place, anchor=event.anchor, nodes=self._nodes - 1)
        )

    def _close(self) -> None:
        frame = self._frames.pop()
        node = frame.node()
        if frame.anchor is not None:
            self._anchors[frame.anchor] = (node, self._nodes - frame.nodes_before, frame.height)
        # The node itself was counted when it was opened.
        self._nodes -= 1
        self._attach(node, frame.height)

    def _take_alias(self, event: AliasEvent) -> None:
        place = self._span(event)
        name = event.anchor or ""
        shown = _shown(name)
        if name not in self._anchors:
            self.report(
                "unknown-anchor",
                "An alias names an anchor that does not exist",
                place,
                f"`*{shown}` repeats the value with the anchor `&{shown}`, and no such anchor is above it in this document.",
                f"Mark the value with `&{shown}`, or put the text in quotes if it begins with `*`.",
            )
            self._attach(_NO_NODE._replace(place=place), 0)
            return
        known = self._anchors[name]
        if known is None:
            self.report(
                "recursive-anchor",
                "A value contains itself",
                place,
                f"`*{shown}` is inside of the value that `&{shown}` marks, so it has no end.",
                "Write the value out.",
            )
            self._attach(_NO_NODE._replace(place=place), 0)
            return
        node, size, height = known
        if len(self._frames) + height > self._limits.depth_max:
            self._report_depth(place)
        self._count(size - 1, place)
        # A scalar is small: it is better shown where it is used.
        self._attach(node._replace(place=place) if isinstance(node, ScalarNode) else node, height)

    def _attach(self, node: Node, height: int) -> None:
        """Put a finished node where it belongs: `height` is that of the collections in it."""
        self._nodes += 1
        if self._nodes > self._limits.nodes_max:
            self._count(0, node.place)
        if not self._frames:
            self._root = node
            return
        frame = self._frames[-1]
        if height >= frame.height:
            frame.height = height + 1
        key = frame.key
        if not frame.is_mapping:
            frame.items.append(node)
        elif key is None:
            frame.key = self._as_key(frame, node)
        else:
            frame.key = None
            if key.raw == _MERGE and not key.style:
                self._merge(frame, key, node)
            elif key is not _NO_NODE:
                frame.entries.append((key, node))

    def _as_key(self, frame: _Frame, node: Node) -> ScalarNode:
        """Return the key, or `_NO_NODE` to read the value and leave it out."""
        if not isinstance(node, ScalarNode):
            self._report_complex_key(node)
            return _NO_NODE
        first = frame.seen.get(node.raw)
        if first is not None:
            self._report_duplicate(node.raw, first.place, node.place)
            return _NO_NODE
        frame.seen[node.raw] = node
        return node

    def _merge(self, frame: _Frame, key: ScalarNode, node: Node) -> None:
        sources = node.items if isinstance(node, SequenceNode) else (node,)
        mappings = [source for source in sources if isinstance(source, MappingNode)]
        if len(mappings) < len(sources):
            self.report(
                "bad-merge",
                "A merge key has nothing to merge",
                key.place,
                "`<<` merges the fields of other mappings, but its value is not a mapping.",
                "Write `<<: *name` or `<<: [*one, *two]`, where each name marks a mapping.",
            )
        frame.merged = mappings

    def _number(self, raw: str, place: Span) -> str | int | float:
        try:
            value = number(raw)
        except OutOfRangeError as exc:
            self.report(
                "number-out-of-range",
                "A number cannot be stored",
                place,
                f"{exc}",
                "Put it in quotes if it is a name, such as a commit's.",
            )
            return raw
        if raw[0] in "0+-" and isinstance(value, int):
            digits = raw.lstrip("+-")
            if digits[0] == "0" and digits[1:].isdigit():
                self._warn_leading_zero(raw, digits, value, place)
        return value

    def _tagged(
        self, tag: str, raw: str, style: str, place: Span
    ) -> str | int | float | bool | None:
        if tag in {"!", f"{_YAML_TAG}str"}:
            return raw
        wanted = _SCALAR_TAGS.get(tag.removeprefix(_YAML_TAG))
        if wanted is None or not tag.startswith(_YAML_TAG):
            self._report_tag(tag, place)
            return raw
        value = WORDS[raw] if raw in WORDS else self._number(raw, place)
        if wanted is float and type(value) is int:
            return float(value)
        if type(value) is not wanted:
            self.report(
                "tag-mismatch",
                "A value does not fit its tag",
                place,
                f"It is tagged `{_shown_tag(tag)}` and cannot be read as that.",
                "Leave the tag out, or correct the value.",
            )
            return raw
        return value

    def _count(self, nodes: int, place: Span) -> None:
        self._nodes += nodes
        if self._nodes > self._limits.nodes_max:
            self.report(
                "too-many-values",
                "The file has too many values",
                place,
                f"It has more than {self._limits.nodes_max} values, aliases written out; reading"
                " stopped here.",
                "Split the file. Write out aliases that repeat values with aliases.",
            )
            raise BuildStoppedError(rest=False)

    def _span(self, event: NodeEvent) -> Span:
        start, end = event.start_mark, event.end_mark
        assert start is not None
        assert end is not None
        is_alias = type(event) is AliasEvent and end.line == start.line
        return Span(
            self._line + start.line, start.column + 1, end.column - start.column if is_alias else 1
        )

    def _report_depth(self, place: Span) -> None:
        self.report(
            "too-deep",
            "Values are nested too deeply",
            place,
            f"Lists and mappings are nested more than {self._limits.depth_max} deep;"
            " no field is deeper than 8. The rest of this document was not read.",
            "Look for a bracket or a brace that is opened again and again.",
        )
        raise BuildStoppedError(rest=True)

    def _report_tag(self, tag: str, place: Span) -> None:
        self.report(
            "unknown-tag",
            "A tag is not known",
            place,
            f"`{_shown_tag(tag)}` asks for a type that the language does not have. Tags are never executed: no document can create objects or run code.",
            "Leave the tag out. If the text begins with `!`, put it in quotes.",
        )

    def _report_duplicate(self, raw: str, first: Span, second: Span) -> None:
        name = _shown(raw)
        self.report(
            "duplicate-key",
            "A field is declared twice",
            second,
            f"`{name}` is here and on line {first.line}. Only one of them can apply.",
            f"Delete one of the two, or join them under the `{name}` of line {first.line}."
            if raw != _MERGE
            else "Join them: `<<: [*one, *two]`.",
        )

    def _report_complex_key(self, node: Node) -> None:
        is_template = isinstance(node, MappingNode)
        self.report(
            "complex-key",
            "The name of a field is not text",
            node.place,
            "A mapping or a list is used as the name of a field."
            + (" `{{ x }}` is not a template here: braces make mappings." if is_template else ""),
            "Write `name: value`. An interpolation is `${{ matrix.x }}`; text that begins with a"
            " brace or a bracket needs quotes.",
        )

    def _warn_leading_zero(self, raw: str, digits: str, value: int, place: Span) -> None:
        detail = f"`{_shown(raw)}` is the number {value} here."
        advice = f'Write {value}, or "{_shown(raw)}" if the zero matters.'
        if digits.strip("0") and not set(digits) & {"8", "9"}:
            detail += f" Older readers of YAML take it for {int(digits, 8)}."
            advice += f" If it counts in eights, as a file's mode, write 0o{digits.lstrip('0')}."
        self.report(
            "leading-zero", "A number begins with a zero", place, detail, advice, Level.WARNING
        )


def _shown_tag(tag: str) -> str:
    return _shown(f"!!{tag.removeprefix(_YAML_TAG)}" if tag.startswith(_YAML_TAG) else tag)


def _shown(text: str) -> str:
    printable = text if text.isprintable() else text.encode("unicode_escape").decode("ascii")
    return printable if len(printable) <= 60 else f"{printable[:60]}…"
