"""What people ask of runs by name, beside the tree: to end, or to run again."""

# ruff: noqa: S608 -- statements are put together from constants of this room; values are bound.

from __future__ import annotations

import json
from collections.abc import Sequence

from fleetform.model.ports import Ids
from fleetform.store.context import Context
from fleetform.store.database import Transaction
from fleetform.store.submissions import Submission, insert_runs

__all__ = ["request_rerun", "request_stop"]

_NAMED = (
    "SELECT name FROM resources, json_each(?1) WHERE kind = 'run' AND name = value"
    " UNION SELECT name FROM resources, json_each(?1)"
    " WHERE kind = 'run' AND resources.parent <> '' AND resources.parent = value"
)
"""Runs by name, and the elements of sweeps and arrays by theirs."""


def request_stop(
    transaction: Transaction, names: Sequence[str], *, who: str, now_ms: int
) -> tuple[str, ...]:
    """See `model.ports.Ledger.request_stop`."""
    open_runs = transaction.execute(
        f"SELECT name, uid FROM runs WHERE final = 0 AND name IN ({_NAMED}) ORDER BY number",
        (json.dumps(list(names)),),
    ).fetchall()
    for name, uid in open_runs:
        asked = transaction.execute(
            "UPDATE runs SET stop_requested = ?, generation = generation + 1"
            " WHERE uid = ? AND stop_requested = ''",
            (f"stopped by {who}", uid),
        )
        if asked.rowcount:
            transaction.log(
                "run.stop-requested",
                now_ms,
                f"{who} asked for the end of run {name}",
                ("run", name),
            )
    return tuple(dict.fromkeys(name for name, _ in open_runs))


def request_rerun(
    transaction: Transaction, names: Sequence[str], *, who: str, now_ms: int, ids: Ids
) -> tuple[str, ...]:
    """See `model.ports.Ledger.request_rerun`."""
    rows = transaction.execute(
        "SELECT s.name, s.document, s.digest, s.execution_digest, s.own_digest, s.type, s.parent,"
        " s.element, s.protected, r.tree_commit FROM resources s JOIN runs r ON r.uid = s.uid"
        f" WHERE s.kind = 'run' AND s.archived = 0 AND r.final = 1 AND s.name IN ({_NAMED})"
        " ORDER BY r.number",
        (json.dumps(list(names)),),
    ).fetchall()
    for name, document, digest, execution, own, type_, parent, element, protected, commit in rows:
        again = Submission(
            name=name,
            document=json.loads(document),
            digest=digest,
            execution_digest=execution,
            own_digest=own,
            type=type_,
            parent=parent,
            element=element,
            protected=bool(protected),
        )
        insert_runs(Context(transaction, "", commit, who, now_ms, ids), [again])
    return tuple(name for name, *_ in rows)
