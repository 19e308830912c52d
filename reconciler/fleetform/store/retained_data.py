"""
Data of released volumes: where it is, and whose it was.

The rows are those of snapshots whose place is the volume's own path. Read for each plan, so
nothing is imported here that a plan does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.model.volume import RetainedData

if TYPE_CHECKING:
    from fleetform.store.database import Transaction
    from fleetform.store.statements import Statements

__all__ = ["read_left", "take_from_left", "uids_left"]

_LEFT = (
    "SELECT volume, volume_uid, path FROM snapshots s WHERE place = path AND NOT EXISTS"
    # A rebuilt ledger has found it by its mark.
    " (SELECT 1 FROM resources r WHERE r.kind = 'volume' AND r.uid = s.volume_uid"
    " AND r.archived = 0) ORDER BY number"
)


def read_left(connection: Statements) -> tuple[RetainedData, ...]:
    """Read the data of released volumes, in the order of their release."""
    return tuple(RetainedData(*row) for row in connection.execute(_LEFT))


def uids_left(transaction: Transaction) -> frozenset[str]:
    return frozenset(uid for _, uid, _ in transaction.execute(_LEFT))


def take_from_left(transaction: Transaction, path: str) -> None:
    """Forget what was left in a directory: a volume has it now."""
    transaction.execute("DELETE FROM snapshots WHERE place = path AND path = ?", (path,))
