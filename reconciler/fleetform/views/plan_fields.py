"""A change's fields as rows of text: the same for the terminal and for a pull request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from fleetform.model.plan import FieldChange
from fleetform.views.field_text import change_texts, leaves
from fleetform.views.lines import printable

__all__ = ["FieldRow", "field_rows"]


class FieldRow(NamedTuple):
    """One row; None for a side on which the field is not set."""

    path: str
    before: str | None
    after: str | None
    forces: bool = False


def field_rows(kind: str, fields: Iterable[FieldChange]) -> tuple[FieldRow, ...]:
    """
    Return rows in the order of the fields.

    A value that is set or taken away as a whole has a row for each field in it.
    """
    rows: list[FieldRow] = []
    for one in fields:
        path = printable(one.path)
        if one.before_set and one.after_set:
            before, after = change_texts(kind, one.path, one.before, one.after)
            rows.append(FieldRow(path, before, after, one.forces))
        elif one.after_set:
            found = leaves(kind, path, one.after)
            rows.extend([FieldRow(name, None, text, one.forces) for name, text in found])
        else:
            found = leaves(kind, path, one.before)
            rows.extend([FieldRow(name, text, None, one.forces) for name, text in found])
    return tuple(rows)
