"""What was planned and applied, one row each, and what came of each step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model import figures
from fleetform.model.plan import Action, Change
from fleetform.views.field_text import brief_leaves
from fleetform.views.moments import moment
from fleetform.views.reasons import reason_sentence
from fleetform.views.table import Cell, Column, Table, make_table, row_of

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.model.history import HistoryEntry, LoggedEvent, OperationRecord
    from fleetform.model.redaction import Seal

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
        row_of(
            HistoryRow,
            entry,
            at=moment(entry.at_ms),
            plan=entry.digest,
            took_ms=None
            if entry.finished_at_ms is None
            else max(0, entry.finished_at_ms - entry.at_ms),
            summary=entry.summary.partition("\n")[0],
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
        row_of(OperationRow, one, step=one.key, resource=str(one.resource)) for one in operations
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


# Applies of the past and the one under way, one row each.


@dataclass(frozen=True, slots=True)
class ApplyRow:
    """
    One apply.

    `state` is `running`, `done`, `failed` or `interrupted`. `plan` is the digest of the applied
    plan. Times are Unix milliseconds; `finished_at_ms` is null while the apply runs.
    """

    uid: str
    plan: str
    state: str
    who: str
    commit: str
    started_at_ms: int
    finished_at_ms: int | None
    summary: str


def apply_rows(records: Sequence[ApplyRecord]) -> tuple[ApplyRow, ...]:
    """Make the rows, in the order of `records`."""
    return tuple(row_of(ApplyRow, record, plan=record.plan_digest) for record in records)


# Events: what happened, one row each, in the order of the ledger.


@dataclass(frozen=True, slots=True)
class EventRow:
    """
    One event.

    `at` is `at_ms` as text, UTC. `resource` is an address such as `run/train`, and empty for events
    of the whole environment. `attempt` and `rank` are null where they do not apply. `data` has the
    values of the message.
    """

    number: int
    at: str
    at_ms: int
    kind: str
    resource: str
    attempt: int | None
    rank: int | None
    message: str
    data: dict[str, Any]


def event_rows(events: Iterable[LoggedEvent]) -> tuple[EventRow, ...]:
    return tuple(
        row_of(
            EventRow,
            event,
            at=moment(event.at_ms),
            resource=str(event.resource) if event.resource else "",
            data=dict(event.data),
        )
        for event in events
    )


def events_table(rows: Iterable[EventRow]) -> Table:
    columns: tuple[Column[EventRow], ...] = (
        Column("TIME", lambda row: Cell(row.at, "dim")),
        Column("EVENT", lambda row: row.kind),
        Column("RESOURCE", _resource),
        Column("MESSAGE", lambda row: row.message),
    )
    return make_table(columns, rows)


def _resource(row: EventRow) -> str:
    """Add try and rank where they tell one job from another."""
    text = row.resource
    if row.attempt is not None and row.attempt > 1:
        text += f" attempt {row.attempt}"
    return text if row.rank is None else f"{text} rank {row.rank}"


# Who made a resource what it is: for each field the apply that set it last, and all that touched it.
# Read from the plans that were applied, newest first. What a plan before the first of them set is
# unknown, and is shown as that.


@dataclass(frozen=True, slots=True)
class Past:
    """An apply and what its plan said of the resource."""

    entry: HistoryEntry
    change: Change


@dataclass(frozen=True, slots=True)
class FieldRow:
    """One field as it is, and who made it so; all but `field` and `value` are empty if that is unknown."""

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
        seal: The environment's: a user of the ledger may not be allowed to read the configuration.
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
            at = moment(entry.at_ms)
            return row_of(FieldRow, entry, field=path, value=text, at=at, plan=entry.digest)
    return FieldRow(path, text)


def _covers(changed: str, path: str) -> bool:
    """Tell whether a change of one path is a change of the other: same, above or below."""
    shorter, longer = sorted((changed, path), key=len)
    return longer.startswith(shorter) and longer[len(shorter) : len(shorter) + 1] in {"", ".", "["}


def touch_rows(past: Iterable[Past]) -> tuple[TouchRow, ...]:
    """In the order of `past`."""
    return tuple(
        row_of(
            TouchRow,
            one.entry,
            at=moment(one.entry.at_ms),
            action=_action(one.change),
            why=reason_sentence(one.change),
            fields=() if _makes(one.change) else tuple(field.path for field in one.change.fields),
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
