"""A plan that was shown is kept beside whoever writes the ledger."""

from __future__ import annotations

from pathlib import Path

from contract.ledgers import ENVIRONMENT, CountingIds, StillClock
from fleetform.store.history import open_to_keep
from fleetform.store.opening import open_ledger


def test_the_disk_is_not_waited_for(tmp_path: Path) -> None:
    """Whatever the power does to it, the ledger stays whole: its log is synced before its file is."""
    path = tmp_path / "ledger.db"
    open_ledger(path, ENVIRONMENT, CountingIds(), StillClock()).close()
    with open_to_keep(path, ENVIRONMENT) as transaction:
        settings = {
            name: transaction.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys")
        }
    # 1 is NORMAL: as FULL, without a sync of each commit.
    assert settings == {"journal_mode": "wal", "synchronous": 1, "foreign_keys": 1}
