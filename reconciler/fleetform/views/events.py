"""Events: what happened, one row each, in the order of the ledger."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from fleetform.model.event import LoggedEvent
from fleetform.views.moments import moment
from fleetform.views.table import Cell, Column, Table, make_table


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
        EventRow(
            number=event.number,
            at=moment(event.at_ms),
            at_ms=event.at_ms,
            kind=event.kind,
            resource=str(event.resource) if event.resource else "",
            attempt=event.attempt,
            rank=event.rank,
            message=event.message,
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
