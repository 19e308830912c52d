"""Events read back: of everything, of one run, of one resource."""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fleetform.model.history import LoggedEvent
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["read_events", "read_resource_events"]

_COLUMNS = "kind, at_ms, message, resource_kind, resource_name, attempt, rank, data, number"

# `[` and the character after it: the names of all elements of a sweep lie between.
_OF_RESOURCE = (
    "resource_kind = ? AND (resource_name = ? OR resource_name >= ? AND resource_name < ?)"
)


def read_events(
    connection: Statements, *, run: str | None, after: int, limit: int
) -> tuple[LoggedEvent, ...]:
    """Read events with a number above `after`, oldest first; of one run or sweep, or of all."""
    condition, values = "number > ?", [after]
    if run is not None:
        condition += f" AND {_OF_RESOURCE}"
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM events WHERE {condition} ORDER BY number LIMIT ?",
        (*values, *(_named("run", run) if run is not None else ()), limit),
    ).fetchall()
    return tuple(_event_of(row) for row in rows)


def read_resource_events(
    connection: Statements, key: ResourceKey, *, limit: int
) -> tuple[LoggedEvent, ...]:
    """Read the latest events of one resource, oldest first; a sweep's with its elements'."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM events WHERE {_OF_RESOURCE} ORDER BY number DESC LIMIT ?",
        (*_named(*key), limit),
    ).fetchall()
    return tuple(_event_of(row) for row in reversed(rows))


def _named(kind: str, name: str) -> tuple[str, str, str, str]:
    return kind, name, f"{name}[", f"{name}\\"


def _event_of(row: Sequence[Any]) -> LoggedEvent:
    kind, at_ms, message, resource_kind, name, attempt, rank, data, number = row
    return LoggedEvent(
        kind,
        at_ms,
        message,
        ResourceKey(resource_kind, name) if resource_kind else None,
        attempt,
        rank,
        json.loads(data) if data else {},
        number,
    )
