"""
Who made a resource what it is: for each field the apply that set it last, and all that touched it.

Read from the plans that were applied, newest first. What a plan before the first of them set is
nobody's, and is shown as that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetform.model.history import HistoryEntry
from fleetform.model.plan import Action, Change
from fleetform.model.redaction import Seal
from fleetform.views.field_text import brief_leaves
from fleetform.views.history import DIGEST_SHOWN
from fleetform.views.moments import moment
from fleetform.views.reasons import reason_sentence
from fleetform.views.table import Cell, Column, Table, make_table

__all__ = ["FieldRow", "Past", "TouchRow", "field_origins", "fields_table", "touch_rows",
           "touches_table"]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Past:
    """An apply and what its plan said of the resource."""

    entry: HistoryEntry
    change: Change


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field as it is, and who made it so; all but `field` and `value` empty if nobody knows."""

    field: str
    value: str
    at: str = ""
    at_ms: int | None = None
    commit: str = ""
    who: str = ""
    plan: str = ""


@dataclass(frozen=True, slots=True)
class TouchRow:
    """One apply that changed the resource; `at` is `at_ms` as text, UTC."""

    at: str
    at_ms: int
    action: str
    why: str
    fields: tuple[str, ...]
    commit: str
    who: str
    plan: str


def field_origins(
    kind: str, document: Mapping[str, Any], past: Sequence[Past], seal: Seal
) -> tuple[FieldRow, ...]:
    """
    Say for each field of a canonical document which apply set it last.

    Args:
        kind: The resource's.
        document: As it is in the ledger.
        past: Newest first.
        seal: The environment's: whoever shares the ledger may not read the tree.
    """
    rows: list[FieldRow] = []
    shown = seal.value(kind, "", document)
    for name in sorted(shown):
        if name == "type":
            continue
        for path, text in brief_leaves(kind, name, shown[name]):
            rows.append(_row(path, text, past))
    return tuple(rows)


def _row(path: str, text: str, past: Sequence[Past]) -> FieldRow:
    for one in past:
        if any(_covers(field.path, path) for field in one.change.fields):
            entry = one.entry
            return FieldRow(
                path, text, moment(entry.at_ms), entry.at_ms, entry.commit, entry.who, entry.digest
            )
    return FieldRow(path, text)


def _covers(changed: str, path: str) -> bool:
    """Tell whether a change of one path is a change of the other: same, above or below."""
    shorter, longer = sorted((changed, path), key=len)
    return longer.startswith(shorter) and longer[len(shorter) : len(shorter) + 1] in {"", ".", "["}


def touch_rows(past: Iterable[Past]) -> tuple[TouchRow, ...]:
    """In the order of `past`."""
    return tuple(
        TouchRow(
            at=moment(one.entry.at_ms),
            at_ms=one.entry.at_ms,
            action=_action(one.change),
            why=reason_sentence(one.change),
            fields=() if _makes(one.change) else tuple(field.path for field in one.change.fields),
            commit=one.entry.commit,
            who=one.entry.who,
            plan=one.entry.digest,
        )
        for one in past
    )


def _makes(change: Change) -> bool:
    return change.action in {Action.CREATE, Action.ADOPT}


def _action(change: Change) -> str:
    return f"moved from {change.moved_from}" if change.moved_from else change.action.value


def fields_table(rows: Iterable[FieldRow]) -> Table:
    columns: tuple[Column[FieldRow], ...] = (
        Column("FIELD", lambda row: row.field),
        Column("SINCE", lambda row: Cell(row.at, "dim")),
        Column("COMMIT", lambda row: row.commit[:DIGEST_SHOWN]),
        Column("BY", lambda row: row.who),
        Column("PLAN", lambda row: row.plan[:DIGEST_SHOWN]),
        Column("VALUE", lambda row: row.value),
    )
    return make_table(columns, rows)


def touches_table(rows: Iterable[TouchRow]) -> Table:
    columns: tuple[Column[TouchRow], ...] = (
        Column("TIME", lambda row: Cell(row.at, "dim")),
        Column("CHANGE", lambda row: row.action),
        Column("FIELDS", lambda row: ", ".join(row.fields), optional=True),
        Column("COMMIT", lambda row: row.commit[:DIGEST_SHOWN]),
        Column("BY", lambda row: row.who),
        Column("PLAN", lambda row: row.plan[:DIGEST_SHOWN]),
        Column("WHY", lambda row: row.why),
    )
    return make_table(columns, rows)
