"""
The ledger for those who only look: the CLI's and the API's read path.

Standard library only, read-only by the driver (`mode=ro`), and beside a writer: WAL lets it read
the last committed state without waiting. It shares its statements with the ledger.
"""

from __future__ import annotations

from pathlib import Path

from fleetform.store.database import Database, connect_reading
from fleetform.store.reads import Reads
from fleetform.store.soundness import require_current, require_sound

__all__ = ["Snapshot", "open_snapshot"]


class Snapshot(Reads):
    """Implements `model.ports.Reader`; see `open_snapshot`."""


def open_snapshot(path: Path, environment_uid: str) -> Snapshot:
    """
    Open the ledger at `path` for reading.

    Raises:
        MissingLedgerError: There is none; nothing has been applied yet.
        OlderLedgerError: An earlier release wrote it, and it is not upgraded yet.
        LedgerError: It is damaged, newer, or another environment's.
    """
    require_sound(path)
    connection = connect_reading(path)
    try:
        require_current(connection, path, environment_uid)
    except BaseException:
        connection.close()
        raise
    return Snapshot(Database(connection))
