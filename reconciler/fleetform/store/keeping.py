"""
Writes one plan down beside whoever writes the ledger: what `plan` does with what it showed.

Standard library only, and without the rooms that drive runs: a plan is shown in a third of a
second, and keeping it must not double that. Nothing is upgraded or made for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fleetform.store.database import Database, Transaction, connect, make_durable
from fleetform.store.soundness import require_current, require_sound

__all__ = ["BUSY_MS", "open_to_keep"]

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
        make_durable(connection, is_awaited=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        with Database(connection).write() as transaction:
            yield transaction
    finally:
        connection.close()
