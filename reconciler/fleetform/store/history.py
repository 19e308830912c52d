"""
Who planned and applied what, when, from which commit, and what came of it.

A plan is kept under its digest, so that planning the same again and again keeps one row. Those
that were applied stay for ever; those that never were go after `PLANS_KEPT_MS`.
"""

from __future__ import annotations

import json
import zlib

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleetform.model.history import HistoryEntry, LoggedEvent, OperationRecord, Touch
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Database, Transaction, connect, make_durable
from fleetform.store.soundness import require_current, require_sound

if TYPE_CHECKING:
    from fleetform.model.apply import ApplyRecord
    from fleetform.store.statements import Statements

__all__ = [
    "BUSY_MS",
    "PLANS_KEPT_MS",
    "find_digests",
    "keep_empty_apply",
    "keep_plan",
    "open_to_keep",
    "pack",
    "read_applies",
    "read_events",
    "read_history",
    "read_operations",
    "read_plan",
    "read_resource_events",
    "read_touches",
    "unpack",
]


PLANS_KEPT_MS = 90 * 24 * 3600 * 1000
"""Ninety days: as long as people ask what a pull request's plan said, as CI systems keep logs."""

_APPLY = (
    "SELECT 'apply', a.plan_digest, a.state, a.who, a.tree_commit, a.started_at_ms,"
    " a.finished_at_ms, a.uid, a.summary, p.summary"
)
_APPLIES = "FROM applies a JOIN plans p ON p.digest = a.plan_digest"
_PLAN = "SELECT 'plan', p.digest, 'made', p.who, p.tree_commit, p.created_at_ms, NULL, '', p.summary, p.summary"


def keep_plan(
    transaction: Transaction,
    digest: str,
    body: bytes,
    *,
    who: str,
    commit: str,
    summary: str,
    now_ms: int,
) -> None:
    """
    Record a plan that was made; one that is recorded already keeps its body and gets the newer time.
    """
    added = transaction.execute(
        "INSERT INTO plans (digest, created_at_ms, who, tree_commit, summary, body)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (digest) DO UPDATE SET"
        " created_at_ms = excluded.created_at_ms, who = excluded.who"
        " WHERE plans.created_at_ms < excluded.created_at_ms",
        (digest, now_ms, who, commit, summary, pack(body)),
    )
    if added.rowcount > 0:
        transaction.execute(
            "DELETE FROM plans WHERE created_at_ms < ?"
            " AND NOT EXISTS (SELECT 1 FROM applies a WHERE a.plan_digest = plans.digest)",
            (now_ms - PLANS_KEPT_MS,),
        )


def keep_empty_apply(
    transaction: Transaction,
    digest: str,
    uid: str,
    *,
    who: str,
    commit: str,
    summary: str,
    now_ms: int,
) -> bool:
    """
    Record that a plan on record was applied and had no change to carry out.

    Returns False where another apply is not over: it says itself how it ends.
    """
    if transaction.one("SELECT 1 FROM applies WHERE state = 'running' LIMIT 1") is not None:
        return False
    transaction.execute(
        "INSERT INTO applies (uid, plan_digest, state, who, tree_commit, started_at_ms,"
        " finished_at_ms, summary) VALUES (?, ?, 'done', ?, ?, ?, ?, ?)",
        (uid, digest, who, commit, now_ms, now_ms, summary),
    )
    return True


def read_plan(connection: Statements, digest: str) -> bytes | None:
    """Read a plan that was kept, as `plan.serialize` wrote it."""
    row = connection.execute("SELECT body FROM plans WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else unpack(row[0])


def read_applies(connection: Statements, which: str, value: str | int) -> tuple[ApplyRecord, ...]:
    """Read the applies that a condition and an order of rows select, with one value."""
    # Here: a plan that is kept needs no values of ports.
    from fleetform.model.apply import ApplyRecord

    rows = connection.execute(
        "SELECT uid, plan_digest, state, who, tree_commit, started_at_ms, finished_at_ms, summary"
        f" FROM applies {which}",
        (value,),
    )
    return tuple(ApplyRecord(*row) for row in rows)


def read_history(
    connection: Statements, *, limit: int, applies_only: bool = False
) -> tuple[HistoryEntry, ...]:
    """
    Read the newest first.

    A plan that an `apply` made and entered at once is one entry, its apply.
    """
    applies = connection.execute(
        f"{_APPLY} {_APPLIES} ORDER BY a.number DESC LIMIT ?", (limit,)
    ).fetchall()
    plans: Iterable[tuple[Any, ...]] = ()
    if not applies_only:
        plans = connection.execute(
            f"{_PLAN} FROM plans p WHERE NOT EXISTS (SELECT 1 FROM applies a"
            " WHERE a.plan_digest = p.digest AND a.started_at_ms = p.created_at_ms)"
            " ORDER BY p.created_at_ms DESC LIMIT ?",
            (limit,),
        ).fetchall()
    entries = [HistoryEntry(*row) for row in (*applies, *plans)]
    # Applies of one millisecond stay in their order: the sort is stable.
    entries.sort(key=lambda entry: entry.at_ms, reverse=True)
    return tuple(entries[:limit])


def find_digests(connection: Statements, prefix: str) -> tuple[str, ...]:
    """Name the plans whose digest begins so, the latest first; two are enough to see that."""
    # Between the prefix and the prefix with a letter behind all hexadecimal digits.
    rows = connection.execute(
        "SELECT digest FROM plans WHERE digest >= ? AND digest < ?"
        " ORDER BY created_at_ms DESC LIMIT 2",
        (prefix, f"{prefix}g"),
    )
    return tuple(digest for (digest,) in rows)


def read_operations(connection: Statements, apply_uid: str) -> tuple[OperationRecord, ...]:
    """Read the steps of an apply, by key."""
    rows = connection.execute(
        "SELECT key, verb, resource_kind, resource_name, state, error, finished_at_ms"
        " FROM operations WHERE apply_uid = ? ORDER BY key",
        (apply_uid,),
    )
    return tuple(
        OperationRecord(key, verb, ResourceKey(kind, name), state, error, finished)
        for key, verb, kind, name, state, error, finished in rows
    )


def read_touches(connection: Statements, key: ResourceKey, *, limit: int) -> tuple[Touch, ...]:
    """Read the applies that did something to a resource under this name, newest first."""
    rows = connection.execute(
        f"{_APPLY}, p.body {_APPLIES}"
        " WHERE a.uid IN (SELECT o.apply_uid FROM operations o"
        "  WHERE o.resource_kind = ? AND o.resource_name = ? AND o.state = 'done')"
        " ORDER BY a.number DESC LIMIT ?",
        (*key, limit),
    )
    return tuple(Touch(HistoryEntry(*row[:-1]), unpack(row[-1])) for row in rows)


# Events read back: of everything, of one run, of one resource.


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


# Writes one plan down beside whoever writes the ledger: what `plan` does with what it showed.
# Standard library only, and without the rooms that drive runs: a plan is shown in a third of a
# second, and keeping it must not double that. Nothing is upgraded or made for it.

BUSY_MS = 250
"""How long a plan waits for another's transaction: less than a person notices."""


@contextmanager
def open_to_keep(path: Path, environment_uid: str) -> Iterator[Transaction]:
    """
    Run one write transaction on an existing ledger of this release's version.

    Raises:
        LedgerError: It cannot be written, or not now; nothing was.
    """
    require_sound(path)
    connection = connect(path)
    try:
        require_current(connection, path, environment_uid)
        # Whoever was shown a plan has it; that it was shown may be forgotten with the power.
        make_durable(connection, is_synchronous=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        with Database(connection).write() as transaction:
            yield transaction
    finally:
        connection.close()


# Plans as the ledger stores them: small ones as they are, large ones compressed.
# The plan of ten thousand new resources is some 20 MB of JSON that repeats itself; it takes a
# twentieth of that when packed, and 0.1 s.

# No JSON begins so.
_MARK = b"\x01zlib"

_SMALL = 4096


def pack(body: bytes) -> bytes:
    if len(body) <= _SMALL:
        return body
    return _MARK + zlib.compress(body, 1)


def unpack(stored: bytes) -> bytes:
    """Return the body, of a packed one or of one that was stored before there were any."""
    # Some drivers give memory views.
    data = bytes(stored)
    return zlib.decompress(data[len(_MARK) :]) if data.startswith(_MARK) else data
