"""
Whether a file is a ledger of ours, of this release, and of this environment.

Looked at before anything is read from it, by writer and snapshot alike. A file of no bytes is
damage and not a new ledger: a full disk or a broken copy leaves one, and taking it for new would
run everything again.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from fleetform.model.redaction import short_uid
from fleetform.store.database import translated
from fleetform.store.errors import (
    RESTORE_FILE,
    UPGRADE,
    DamagedLedgerError,
    ForeignLedgerError,
    NewerLedgerError,
    OlderLedgerError,
)
from fleetform.store.schema import VERSION, VERSIONS, read_version
from fleetform.store.shape import WHY, columns_of, lacking

__all__ = ["require_current", "require_known", "require_owner", "require_shape", "require_sound"]


def require_sound(path: Path) -> None:
    """Refuse what is there and cannot be a database; what is missing passes."""
    if path.exists() and not path.stat().st_size:
        raise DamagedLedgerError(
            f"the ledger {path} is empty: its content was lost", advice=RESTORE_FILE
        )


def require_known(connection: sqlite3.Connection, path: Path) -> str:
    """
    Return the version of the schema, which may be an older one.

    Raises:
        DamagedLedgerError: The database is none of ours, or of no release.
        NewerLedgerError: A later release has upgraded it.
    """
    with translated():
        version = read_version(connection)
    if version is None:
        raise DamagedLedgerError(f"{path} is a database, but not a ledger", advice=RESTORE_FILE)
    if version > VERSION:
        raise NewerLedgerError(
            f"the ledger {path} has version {version}, and this fleetform knows {VERSION}",
            advice="upgrade fleetform",
        )
    if version not in VERSIONS:
        raise DamagedLedgerError(
            f"the ledger {path} says that it has version {version}, which no release has written",
            advice=RESTORE_FILE,
        )
    return version


def require_shape(connection: sqlite3.Connection, path: Path) -> None:
    """
    Refuse a ledger of this release's version without this release's tables.

    Raises:
        DamagedLedgerError: Says what it lacks.
    """
    with translated():
        lacks = lacking(columns_of(connection))
    if lacks:
        raise DamagedLedgerError(
            f"the ledger {path} has version {VERSION} and lacks {lacks}: {WHY}", advice=RESTORE_FILE
        )


def require_owner(connection: sqlite3.Connection, path: Path, environment_uid: str) -> None:
    with translated():
        row = connection.execute("SELECT environment_uid FROM meta").fetchone()
    if row is None:
        raise DamagedLedgerError(f"the ledger {path} has no environment uid", advice=RESTORE_FILE)
    (owner,) = row
    if owner != environment_uid:
        raise ForeignLedgerError(
            f"the ledger {path} belongs to environment {short_uid(owner)}, not to"
            f" {short_uid(environment_uid)}",
            advice="check the uid in environment.yaml: it names the state, and never changes",
            owner=owner,
        )


def require_current(connection: sqlite3.Connection, path: Path, environment_uid: str) -> None:
    """Refuse everything but this environment's ledger in this release's version."""
    version = require_known(connection, path)
    if version < VERSION:
        raise OlderLedgerError(
            f"the ledger {path} has version {version}, and this fleetform needs {VERSION}",
            advice=UPGRADE,
        )
    require_owner(connection, path, environment_uid)
