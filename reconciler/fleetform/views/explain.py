"""
A field of the language as lines: what it is, how it is written, what a change of it does.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fleetform.views.lines import BLANK, Line, Span, line

if TYPE_CHECKING:
    from fleetform.spec.explain import Explanation, Part

# Wider lines are read worse, whatever the terminal has.
_WIDTH_MAX = 100
_INDENT = "  "


def explanation_lines(found: Explanation, *, width: int) -> Iterator[Line]:
    """
    The whole of an explanation.

    Args:
        found: The field.
        width: Columns; 0 where lines are not to be cut.
    """
    columns = min(width, _WIDTH_MAX) or _WIDTH_MAX
    yield line((found.path, "bold"), (f"  {found.type}", "dim"))
    for text in textwrap.wrap(found.description, columns - len(_INDENT)):
        yield line(_INDENT, text)
    yield from _facts(found)
    yield from _section("Written as", [(one, "") for one in found.spellings], columns)
    yield from _section("Values", [(one.value, one.meaning) for one in found.choices], columns)
    yield from _section("Examples", [(one, "") for one in found.examples], columns)
    yield from _section("Fields", [_part(one) for one in found.parts], columns)


def part_lines(parts: Iterable[tuple[str, Part]], *, width: int) -> Iterator[Line]:
    """
    Parts below each other, indented by their depth.

    Args:
        parts: With the whole path of each, in the order they are shown.
        width: Columns; 0 where lines are not to be cut.
    """
    listed = list(parts)
    top = min((path.count(".") for path, _ in listed), default=0)
    rows = [
        (f"{_INDENT * (path.count('.') - top)}{part.name}", f"{part.type}. {part.summary}")
        for path, part in listed
    ]
    yield from _rows(rows, min(width, _WIDTH_MAX) or _WIDTH_MAX)


def kind_lines(kinds: Iterable[Part], *, width: int) -> Iterator[Line]:
    """All types of documents, one a line."""
    yield from _rows([(kind.name, kind.summary) for kind in kinds], width or _WIDTH_MAX)


def _facts(found: Explanation) -> Iterator[Line]:
    facts = [
        ("Default", found.default),
        ("Unit", found.unit),
        ("Change", found.change),
    ]
    said = [(name, value) for name, value in facts if value]
    if said:
        yield BLANK
        wide = max(len(name) for name, _ in said)
        for name, value in said:
            yield line((f"{name:<{wide}}", "dim"), f"  {value}")


def _part(part: Part) -> tuple[str, str]:
    needed = "Required. " if part.required else ""
    return part.name, f"{part.type}. {needed}{part.summary}"


def _section(title: str, rows: list[tuple[str, str]], columns: int) -> Iterator[Line]:
    if rows:
        yield BLANK
        yield line((title, "bold"))
        yield from _rows([(f"{_INDENT}{name}", text) for name, text in rows], columns)


def _rows(rows: list[tuple[str, str]], columns: int) -> Iterator[Line]:
    """Two columns; the second is cut at its end, since a field's own page has all of it."""
    wide = max((len(name) for name, text in rows if text), default=0)
    for name, text in rows:
        if not text:
            yield line(name)
            continue
        room = max(columns - wide - len(_INDENT), 20)
        yield Line((Span(f"{name:<{wide}}"), Span(_INDENT), Span(_cut(text, room), "dim")))


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1].rstrip()}…"
