"""
From a path to a ledger: made, opened, or refused with the reason.

A new file gets its whole content under another name first: whoever finds `ledger.db` finds a
ledger, whatever crashed while it was made.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.model.ledger import LedgerStatus
from fleetform.spec.private_folder import make_private_folder, sync_folder
from fleetform.store.database import Database, connect, make_durable, translated
from fleetform.store.errors import LedgerFullError, ReadOnlyLedgerError
from fleetform.store.filesystem import require_local
from fleetform.store.ledger import StoredLedger
from fleetform.store.lock import FileLocation
from fleetform.store.schema import create_schema
from fleetform.store.soundness import require_current, require_shape, require_sound
from fleetform.store.statements import CREATE_META

if TYPE_CHECKING:
    from fleetform.model.ports import Clock, Ids

__all__ = ["is_new", "ledger_in_memory", "open_ledger"]


def is_new(path: Path) -> bool:
    """Tell whether there is no ledger yet; an empty file is a damaged one."""
    return not path.exists()


def open_ledger(path: Path, environment_uid: str, ids: Ids, clock: Clock) -> StoredLedger:
    """
    Open the environment's ledger for writing, making it if there is none.

    One of an earlier release is refused: `upgrading` upgrades it, after a backup.

    Its folder gets mode 0700. A new ledger has an id of its own, epoch 1 and status `empty`.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    try:
        make_private_folder(path.parent)
        require_local(path.parent)
        require_sound(path)
        if is_new(path):
            _make(path, environment_uid, ids, clock)
    except PermissionError as error:
        raise ReadOnlyLedgerError(
            f"the ledger's folder {path.parent} may not be used by this user",
            advice="make it writable, or set FLEETFORM_STATE_HOME to another folder",
        ) from error
    except OSError as error:
        raise LedgerFullError(
            f"no ledger can be created in {path.parent}: {error.strerror}",
            advice="free space there, or set FLEETFORM_STATE_HOME to another folder",
        ) from error
    return _open(path, environment_uid, ids)


def _make(path: Path, environment_uid: str, ids: Ids, clock: Clock) -> None:
    """Write a whole ledger next to `path`, then give it its name if that is free."""
    ledger_id = ids.uid()
    draft = path.with_name(f".{path.name}.{ledger_id}")
    try:
        _write_draft(draft, environment_uid, ledger_id, clock.now_ms())
        # Another process that made one meanwhile has won, and its ledger is opened.
        with suppress(FileExistsError):
            os.link(draft, path)
        sync_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def _write_draft(draft: Path, environment_uid: str, ledger_id: str, now_ms: int) -> None:
    with translated():
        connection = sqlite3.connect(draft, isolation_level=None)
        try:
            draft.chmod(0o600)
            # No journal: a draft that did not come to its end is thrown away. Leaving it in WAL
            # mode would leave its log beside it under the wrong name.
            connection.execute("PRAGMA journal_mode = OFF")
            _fill(connection, environment_uid, ledger_id, now_ms)
        finally:
            connection.close()
    with draft.open("rb") as file:
        os.fsync(file.fileno())


def _fill(
    connection: sqlite3.Connection, environment_uid: str, ledger_id: str, now_ms: int
) -> None:
    create_schema(connection)
    connection.execute(CREATE_META, (environment_uid, ledger_id, LedgerStatus.EMPTY, now_ms))


def ledger_in_memory(environment_uid: str, ids: Ids, *, now_ms: int) -> StoredLedger:
    """Make a ledger that ends with its connection: same schema, same statements, no file."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    _fill(connection, environment_uid, ids.uid(), now_ms)
    return StoredLedger(Database(connection), ids)


def _open(path: Path, environment_uid: str, ids: Ids) -> StoredLedger:
    connection = connect(path)
    try:
        require_current(connection, path, environment_uid)
        require_shape(connection, path)
        make_durable(connection)
        location = FileLocation(path, "the ledger")
    except BaseException:
        connection.close()
        raise
    return StoredLedger(Database(connection, location), ids)
