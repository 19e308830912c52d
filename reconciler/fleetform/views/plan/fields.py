"""A change's fields as rows of text: the same for the terminal and for a pull request."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from fleetform.model.plan import Action, Change, FieldChange
from fleetform.views.field_text import change_texts, leaf_values, value_text
from fleetform.views.lines import printable
from fleetform.views.text_diff import DiffLine, diff_lines

__all__ = [
    "FORCES",
    "LEAVING",
    "FieldRow",
    "document_after",
    "document_before",
    "field_row",
    "field_rows",
    "leaf_changes",
    "nested",
    "path_parts",
]


FORCES = "forces replacement"
"""The remark at a field whose change makes a run execute again."""


class FieldRow(NamedTuple):
    """
    One row; None for a side on which the field is not set.

    `lines` are the difference of texts of several lines; then `before` and `after` are the same
    on one line each, for those who have no room for more.
    """

    path: str
    before: str | None
    after: str | None
    forces: bool = False
    lines: tuple[DiffLine, ...] = ()

    def sides(self) -> dict[str, str | bool | None]:
        """Return JSON values without the lines, which say the same once more."""
        return {
            "path": self.path,
            "before": self.before,
            "after": self.after,
            "forces": self.forces,
        }


def field_rows(kind: str, fields: Iterable[FieldChange]) -> tuple[FieldRow, ...]:
    """
    Return rows in the order of the fields.

    A value that is set or taken away as a whole has a row for each field in it.
    """
    return tuple([field_row(kind, one) for one in leaf_changes(kind, fields)])


def leaf_changes(kind: str, fields: Iterable[FieldChange]) -> list[FieldChange]:
    """Changes of one row each, in the same order."""
    found: list[FieldChange] = []
    for one in fields:
        path = printable(one.path)
        if one.before_set and one.after_set:
            found.append(one if path == one.path else replace(one, path=path))
        elif one.after_set:
            for name, value in leaf_values(kind, path, one.after):
                found.append(_leaf(one, name, None, value))
        else:
            for name, value in leaf_values(kind, path, one.before):
                found.append(_leaf(one, name, value, None))
    return found


def _leaf(one: FieldChange, path: str, before: Any, after: Any) -> FieldChange:
    # By their places, which is three times as fast: ten thousand elements have six leaves each.
    return FieldChange(
        path,
        before,
        after,
        one.before_set,
        one.after_set,
        one.forces,
        one.field_class,
        one.sensitive,
        one.unknown,
    )


def field_row(kind: str, one: FieldChange) -> FieldRow:
    """Write one leaf."""
    lines = _lines(one)
    if one.before_set and one.after_set:
        before, after = change_texts(kind, one.path, one.before, one.after)
        return FieldRow(one.path, before, after, one.forces, lines)
    if one.after_set:
        return FieldRow(one.path, None, value_text(kind, one.path, one.after), one.forces, lines)
    return FieldRow(one.path, value_text(kind, one.path, one.before), None, one.forces, lines)


def _lines(one: FieldChange) -> tuple[DiffLine, ...]:
    sides = [_text_of(one.before), _text_of(one.after)]
    if not any(side and "\n" in side for side in sides):
        return ()
    # Text in the place of a number, or the other way round: each is shown whole.
    if (one.before_set and sides[0] is None) or (one.after_set and sides[1] is None):
        return ()
    found = diff_lines(*sides)
    # Of what is new, or goes, every line is one: where they stand says nothing.
    is_whole = None in sides
    return tuple(line for line in found if not (is_whole and line.sign == "@"))


def _text_of(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# A field's path taken apart, and values put where paths say: `env.LR`, `files["a.py"].sha256`.

_PART = re.compile(r"(?:^|\.)(?P<name>[^.\[\]]+)|\[(?P<place>\"(?:[^\"\\]|\\.)*\"|\d+)\]")


def path_parts(path: str) -> list[str | int]:
    """The keys and places on the way to a field; places are whole numbers."""
    return [
        found["name"] if found["name"] is not None else json.loads(found["place"])
        for found in _PART.finditer(path)
    ]


def nested(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """
    A mapping with each value at its path.

    A place in a list is a key like any other: of a list that is known in part, nobody can say what
    stands before it. A value at a path below that of another one is the other one's matter.
    """
    whole: dict[str, Any] = {}
    for path, value in values:
        *above, last = [str(part) for part in path_parts(path)] or [path]
        inside: Any = whole
        for part in above:
            inside = inside.setdefault(part, {}) if isinstance(inside, dict) else None
        if isinstance(inside, dict):
            inside[last] = value
    return whole


# The whole documents before and after one change.
# Documents come sealed. What a change was planned against it carries itself; what it leads to as
# well where something in it is sealed, else it is in the step that carries it out.

LEAVING = frozenset({Action.DELETE, Action.FORGET, Action.ARCHIVE})
"""After these there is no document."""


def document_before(change: Change) -> Mapping[str, Any] | None:
    if change.before is not None:
        return change.before
    # Rules have no document of their own: what changes is all that there is.
    known = [(one.path, one.before) for one in change.fields if one.before_set]
    return nested(known) if known else None


def document_after(change: Change) -> Mapping[str, Any] | None:
    if change.action in LEAVING:
        return None
    if change.after is not None:
        return change.after
    for step in reversed(change.steps):
        document = step.arguments.get("document")
        if document is not None:
            shown: Mapping[str, Any] = document
            return shown
    if change.before is not None:
        # A pure move changes nothing of it.
        return None if change.fields or not change.moved_from else change.before
    known = [(one.path, one.after) for one in change.fields if one.after_set]
    return nested([("type", change.type), *known]) if known else None
