"""
Whether a file is a ledger of fleetform, of this release, and of this environment.

Looked at before anything is read from it, by writer and snapshot alike. A file of no bytes is
damage and not a new ledger: a full disk or a broken copy leaves one, and taking it for new would
run everything again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fleetform.model.redaction import short_uid
from fleetform.store.database import connect, translated
from fleetform.store.errors import (
    RESTORE_FILE,
    UPGRADE,
    DamagedLedgerError,
    ForeignLedgerError,
    NewerLedgerError,
    OlderLedgerError,
)
from fleetform.store.schema import (
    VERSION,
    VERSIONS,
    WHY,
    columns_of,
    lacking,
    read_version,
    upgrade_schema,
)

if TYPE_CHECKING:
    from fleetform.store.statements import Statements
__all__ = [
    "Keep",
    "Upgraded",
    "require_current",
    "require_known",
    "require_owner",
    "require_shape",
    "require_sound",
    "upgrade_file",
]


def require_sound(path: Path) -> None:
    """Refuse a file that cannot be a database; a missing one passes."""
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


# Upgrades a ledger that an earlier release wrote, after a backup of it.
# Opening a ledger never does so by itself: an upgrade cannot be taken back, so the command that asks for it
# first says where the backup goes, and tells the person.

Keep: TypeAlias = "Callable[[Statements, str], Path]"
"""Writes a backup of a ledger of a version, and returns where it is."""


@dataclass(frozen=True, slots=True)
class Upgraded:
    """From which version of the schema to which, and where the backup of the first is."""

    before: str
    after: str
    backup: Path


def upgrade_file(path: Path, environment_uid: str, keep: Keep) -> Upgraded | None:
    """
    Upgrade the ledger at `path`; None where it is of this release already.

    One transaction: a crash leaves the old ledger or the new one.

    Args:
        path: The ledger's file, which exists.
        environment_uid: Whose ledger it is.
        keep: Writes the backup; where it cannot, nothing is changed.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    require_sound(path)
    with closing(connect(path)) as connection:
        version = require_known(connection, path)
        require_owner(connection, path, environment_uid)
        if version == VERSION:
            return None
        with translated():
            # A backup is of one moment, although others write.
            connection.execute("BEGIN")
            try:
                backup = keep(connection, version)
            finally:
                connection.execute("ROLLBACK")
            upgrade_schema(connection)
        require_shape(connection, path)
    return Upgraded(version, VERSION, backup)
