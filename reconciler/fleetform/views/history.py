"""What was planned and applied, one row each, and what came of each step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fleetform.model import figures
from fleetform.model.history import HistoryEntry, OperationRecord
from fleetform.views.moments import moment
from fleetform.views.table import Cell, Column, Table, make_table

__all__ = ["HistoryRow", "OperationRow", "history_rows", "history_table", "operation_rows",
           "operations_table"]  # fmt: skip

DIGEST_SHOWN = 12
"""Letters of a digest or a commit that tell it from all others of one environment."""

_TONES = {"done": "good", "failed": "bad", "interrupted": "warn", "running": "info"}


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """
    One plan or apply.

    `at` is `at_ms` as text, UTC. `plan` and `commit` are complete here and short in the table.
    `took_ms` is null for a plan, and while an apply runs. `changes` is one line about the changes of
    the plan, `summary` one line about the result of the apply.
    """

    at: str
    at_ms: int
    kind: str
    state: str
    plan: str
    commit: str
    who: str
    took_ms: int | None
    changes: str
    summary: str
    apply_uid: str


def history_rows(entries: Iterable[HistoryEntry]) -> tuple[HistoryRow, ...]:
    """Make the rows, in the order of `entries`."""
    return tuple(
        HistoryRow(
            at=moment(entry.at_ms),
            at_ms=entry.at_ms,
            kind=entry.kind,
            state=entry.state,
            plan=entry.digest,
            commit=entry.commit,
            who=entry.who,
            took_ms=None
            if entry.finished_at_ms is None
            else max(0, entry.finished_at_ms - entry.at_ms),
            changes=entry.changes,
            summary=entry.summary.partition("\n")[0],
            apply_uid=entry.apply_uid,
        )
        for entry in entries
    )


def history_table(rows: Iterable[HistoryRow]) -> Table:
    columns: tuple[Column[HistoryRow], ...] = (
        Column("TIME", lambda row: Cell(row.at, "dim")),
        Column("PLAN", lambda row: row.plan[:DIGEST_SHOWN]),
        Column("OUTCOME", lambda row: Cell(_outcome(row), _TONES.get(row.state, "dim"))),
        Column("BY", lambda row: row.who),
        Column("COMMIT", lambda row: _short(row.commit)),
        Column("TOOK", lambda row: figures.span(row.took_ms) if row.took_ms is not None else ""),
        Column("CHANGES", _changes),
    )
    return make_table(columns, rows)


def _outcome(row: HistoryRow) -> str:
    return "planned" if row.kind == "plan" else row.state


def _changes(row: HistoryRow) -> str:
    """Say what changed, and of an apply that did not come to its end what came of it."""
    if not row.changes or row.kind == "plan" or row.state == "done":
        return row.changes or row.summary
    return f"{row.changes}: {row.summary}" if row.summary else row.changes


def _short(commit: str) -> str:
    digits, plus, dirty = commit.partition("+")
    return f"{digits[:DIGEST_SHOWN]}{plus}{dirty}"


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One step of an apply and its result; `finished_at_ms` is null for a step that was not done."""

    step: str
    verb: str
    resource: str
    state: str
    error: str
    finished_at_ms: int | None


def operation_rows(operations: Iterable[OperationRecord]) -> tuple[OperationRow, ...]:
    """In the order in which they came to their end; those that did not come last."""
    rows = [
        OperationRow(one.key, one.verb, str(one.resource), one.state, one.error, one.finished_at_ms)
        for one in operations
    ]
    rows.sort(key=lambda row: (row.finished_at_ms is None, row.finished_at_ms or 0, row.step))
    return tuple(rows)


def operations_table(rows: Iterable[OperationRow]) -> Table:
    columns: tuple[Column[OperationRow], ...] = (
        Column(
            "TIME",
            lambda row: Cell(moment(row.finished_at_ms) if row.finished_at_ms else "", "dim"),
        ),
        Column("STEP", lambda row: row.verb),
        Column("RESOURCE", lambda row: row.resource),
        Column("OUTCOME", lambda row: Cell(row.state, _TONES.get(row.state, "dim"))),
        Column("WHY", lambda row: row.error, optional=True),
    )
    return make_table(columns, rows)
