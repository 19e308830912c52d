"""
Proof, by a host's hello, that a newer ledger of this environment has existed.

What is committed here is committed before any host hears of it. So a host that has heard more
than is written here has heard it from a ledger that went on after this copy of it was taken.
"""

from __future__ import annotations

import json

from fleetform.providers.contract.observed import HostSeen
from fleetform.store.database import Transaction

__all__ = ["outgrown_by"]


def outgrown_by(transaction: Transaction, seen: HostSeen) -> str:
    """Return the sentence that says what the host knows and this ledger does not, or nothing."""
    row = transaction.one(
        "SELECT i.name, i.log_id, i.log_number, m.ledger_id, m.epoch FROM instances i, meta m"
        " WHERE i.uid = ? AND i.state <> 'terminated'",
        (seen.instance_uid,),
    )
    if row is None:
        return ""
    name, log_id, log_number, ledger_id, epoch = row
    if seen.epoch > epoch:
        return f"host {name} knows epoch {seen.epoch} of the ledger, and this ledger is at epoch {epoch}"
    if log_id == seen.cursor.log_id and seen.oldest - 1 > log_number:
        return (
            f"the ledger had recorded the events of host {name} up to {seen.oldest - 1}, and has"
            f" them up to {log_number} now"
        )
    if seen.ledger_id != ledger_id:
        return ""
    if run_uid := _unknown_run(transaction, seen):
        return f"host {name} has had jobs of run {run_uid}, which is not in the ledger"
    return ""


def _unknown_run(transaction: Transaction, seen: HostSeen) -> str:
    """Return the uid of a run that only the host knows, or nothing."""
    uids = dict.fromkeys(record.key.run_uid for record in seen.records or ())
    row = transaction.one(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT uid FROM runs) LIMIT 1",
        (json.dumps(list(uids)),),
    )
    return str(row[0]) if row is not None else ""
