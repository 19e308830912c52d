"""The fields of a change, or of many elements' changes, as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fleetform.model.plan import Action, Change, FieldChange
from fleetform.views.field_text import leaf_values, value_text
from fleetform.views.lines import Line, Span, line, printable
from fleetform.views.plan_fields import FORCES, FieldRow, field_row
from fleetform.views.plan_folds import SAME_TEXT, fold, more_text
from fleetform.views.plan_groups import Group
from fleetform.views.text_diff import TONES

__all__ = ["field_lines", "row_lines"]

PATH_WIDTH = 40
"""Columns up to which the paths of a block are aligned; a longer one pushes its own value only."""


INDENT = " " * 6


def field_lines(group: Group) -> Iterator[Line]:
    """Write what `fold` found of a group, aligned."""
    change = group.first
    # What is made has no other side; what returns is compared with what it was.
    is_new = change.action in _CREATES and not any(
        one.before_set for each in group.changes for one in each.fields
    )
    if is_new and not group.is_many:
        yield from _new_lines(change)
        return
    folds = fold(group)
    paths = [f"{one.field.path}{f' of {one.elements}' if one.elements else ''}" for one in folds]
    width = _width(paths)
    for path, one in zip(paths, folds, strict=True):
        if one.more:
            yield line(INDENT, (more_text(one), "dim"))
            continue
        row = field_row(change.key.kind, one.field)._replace(path=path)
        note = FORCES if row.forces and group.may_force else ""
        yield from row_lines(row, INDENT, width=width, is_new=is_new, note=note)


def _new_lines(change: Change) -> Iterator[Line]:
    """The same of one new thing, without rows: of a plan that makes everything nearly all is this."""
    kind = change.key.kind
    told: list[tuple[str, Any]] = []
    for one in change.fields:
        told += leaf_values(kind, printable(one.path), one.after)
    width = _width([path for path, _ in told])
    for path, value in told:
        if isinstance(value, str) and "\n" in value:
            one = FieldChange(path, None, value, before_set=False)
            yield from row_lines(field_row(kind, one), INDENT)
        else:
            text = value_text(kind, path, value)
            yield Line((Span(f"{INDENT}{path}: {' ' * (width - len(path))}{text}"),))


_CREATES = frozenset({Action.CREATE, Action.ADOPT})


def row_lines(
    row: FieldRow, indent: str, *, width: int = 0, is_new: bool = False, note: str = ""
) -> Iterator[Line]:
    """Write one row; a text of several lines as its difference, below its path."""
    comment = [Span(f"  # {note}", "dim")] if note else []
    if row.lines:
        yield line(f"{indent}{row.path}:", *comment)
        for one in row.lines:
            yield line(f"{indent}  ", (str(one), TONES[one.sign]))
        return
    path = f"{indent}{row.path}: {' ' * (width - len(row.path))}"
    yield line(path, *([Span(row.after or "")] if is_new else _sides(row)), *comment)


def _width(paths: Sequence[str]) -> int:
    lengths = list(map(len, paths))
    widest = max(lengths, default=0)
    if widest <= PATH_WIDTH:
        return widest
    return max([length for length in lengths if length <= PATH_WIDTH], default=0)


def _sides(row: FieldRow) -> list[Span]:
    if row.before is not None and row.before == row.after:
        return [Span(row.before), Span(f"  # {SAME_TEXT}", "dim")]
    before = Span("(not set)", "dim") if row.before is None else Span(row.before, "bad")
    after = Span("(not set)", "dim") if row.after is None else Span(row.after, "good")
    return [before, Span(" → ", "dim"), after]
