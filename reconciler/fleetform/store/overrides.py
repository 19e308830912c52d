"""
Overrides, in force from the moment of their commit.

The end of running runs is requested in the same transaction, so that nothing starts between the two. An override that
expires stays as a row: each reader compares its time.
"""

from __future__ import annotations

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.model.override import Override, OverrideKind, PastOverride, PutInForce
from fleetform.model.selection import address_problem

if TYPE_CHECKING:
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements
__all__ = [
    "end_quarantine",
    "end_stopped",
    "lift_overrides",
    "put_overrides",
    "read_overrides",
    "read_past_overrides",
    "rename_targets",
]


# In the order in which `_override` takes them.
_COLUMNS = "number, kind, target, reason, who, since_ms, until_ms"


def put_overrides(
    transaction: Transaction,
    kind: OverrideKind,
    targets: Sequence[str],
    *,
    reason: str,
    who: str,
    now_ms: int,
    until_ms: int | None,
) -> PutInForce:
    """See `model.ports.Ledger.put_overrides`."""
    put = []
    for target in targets or ("",):
        if kind is OverrideKind.STOP and (problem := address_problem(target)):
            raise ValueError(problem)
        row = transaction.one(
            "INSERT INTO overrides (kind, target, reason, who, since_ms, until_ms)"
            f" VALUES (?, ?, ?, ?, ?, ?) RETURNING {_COLUMNS}",
            (kind.value, target, reason, who, now_ms, until_ms),
        )
        assert row is not None
        override = _override(row)
        put.append(override)
        transaction.log("override.put", now_ms, override.sentence)
    ending = _end_runs(transaction, put, now_ms) if kind is OverrideKind.STOP else ()
    return PutInForce(tuple(put), ending)


def end_stopped(transaction: Transaction, now_ms: int) -> None:
    """Request the end of runs that a rebuild has found running although a stop is in force."""
    holds = (one for one in read_overrides(transaction) if one.holds_at(now_ms))
    stops = [one for one in holds if one.kind is OverrideKind.STOP]
    if stops:
        _end_runs(transaction, stops, now_ms)


def _end_runs(
    transaction: Transaction, overrides: Sequence[Override], now_ms: int
) -> tuple[str, ...]:
    """
    Request the end of running runs; runs that wait for a place keep waiting.

    A run that has not begun loses nothing by waiting, and starts by itself afterwards.
    """
    rows = transaction.execute(
        "SELECT r.uid, r.name, r.parent, r.stop_requested FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.final = 0 AND a.state <> 'waiting' ORDER BY r.number"
    ).fetchall()
    ending: dict[str, None] = {}
    for uid, name, parent, asked in rows:
        override = next((one for one in overrides if one.stops(name, parent)), None)
        if override is None:
            continue
        ending[name] = None
        if asked:
            continue
        transaction.execute(
            "UPDATE runs SET stop_requested = ?, generation = generation + 1 WHERE uid = ?",
            (override.sentence, uid),
        )
        transaction.log(
            "run.stop-requested",
            now_ms,
            f"run {name} is asked to stop ({override.sentence})",
            ("run", name),
        )
    return tuple(ending)


def lift_overrides(
    transaction: Transaction, numbers: Sequence[int] | None, *, who: str, now_ms: int
) -> tuple[Override, ...]:
    """See `model.ports.Ledger.lift_overrides`."""
    lifted = tuple(
        one
        for one in read_overrides(transaction)
        if one.holds_at(now_ms) and (numbers is None or one.number in numbers)
    )
    for one in lifted:
        transaction.execute(
            "UPDATE overrides SET lifted_at_ms = ?, lifted_by = ? WHERE number = ?",
            (now_ms, who, one.number),
        )
        transaction.log("override.lifted", now_ms, f"{who} lifted the {one.title}")
    return lifted


def end_quarantine(transaction: Transaction, host: str, *, now_ms: int) -> None:
    """
    Lift the quarantine of a host that has left: a new host of that name must not inherit it.

    While another fleet has a host of that name, it is the same machine, and stays quarantined. An instance of a cloud
    that has ended has a number below 0, and is not asked.
    """
    rows = transaction.execute(
        "UPDATE overrides SET lifted_at_ms = ?, lifted_by = ?"
        " WHERE kind = ? AND target = ? AND lifted_at_ms IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM instances WHERE name = ? AND state <> 'terminated'"
        " AND number >= 0)"
        f" RETURNING {_COLUMNS}",
        (now_ms, "the removal of the host", OverrideKind.QUARANTINE.value, f"host/{host}", host),
    ).fetchall()
    for row in rows:
        title = _override(row).title
        transaction.log("override.lifted", now_ms, f"lifted the {title}: the host has left")


def rename_targets(transaction: Transaction, names: Iterable[tuple[str, str]]) -> None:
    """Let overrides follow what they name: each pair has the target before and after."""
    transaction.many(
        "UPDATE overrides SET target = ? WHERE target = ?",
        ((after, before) for before, after in names),
    )


def read_overrides(connection: Transaction | Statements) -> tuple[Override, ...]:
    """Read the overrides that were not lifted, by number; whether its time is up is the reader's to ask."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM overrides WHERE lifted_at_ms IS NULL ORDER BY number"
    )
    return tuple(_override(row) for row in rows)


def read_past_overrides(connection: Statements, *, limit: int | None) -> tuple[PastOverride, ...]:
    """Read the newest, newest first, whatever became of them; None: all."""
    rows = connection.execute(
        f"SELECT {_COLUMNS}, lifted_at_ms, lifted_by FROM overrides ORDER BY number DESC"
        + (" LIMIT ?" if limit is not None else ""),
        () if limit is None else (limit,),
    )
    return tuple(PastOverride(_override(row[:7]), row[7], row[8]) for row in rows)


def _override(row: Sequence[Any]) -> Override:
    number, kind, *rest = row
    return Override(number, OverrideKind(kind), *rest)
