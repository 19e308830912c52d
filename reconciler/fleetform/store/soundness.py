"""
Whether what was found is a ledger of fleetform, of this release, and of this environment.

Checked before anything is read from it, by writers and readers, in a file of SQLite and in a schema of PostgreSQL. A
file of no bytes is damage and not a new ledger: a full disk or a broken copy leaves one, and a new ledger in its place would
run everything again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from fleetform.agents.protocol.naming import short_uid
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
    "FoundLedger",
    "Keep",
    "Upgraded",
    "require_current",
    "require_shape",
    "require_sound",
    "upgrade_file",
]


@dataclass(frozen=True, slots=True)
class FoundLedger:
    """
    A ledger that was found, and what is required of it before it is used.

    `name` is what an error calls it, `advice` what to do if it is damaged.
    """

    name: str
    advice: str

    def require_known(self, version: str) -> None:
        """
        Accept a version of the schema that a release has written, also an older one.

        Raises:
            DamagedLedgerError: No release has written it.
            NewerLedgerError: A later release has upgraded it.
        """
        if version > VERSION:
            raise NewerLedgerError(
                f"{self.name} has version {version}, and this fleetform knows {VERSION}",
                advice="upgrade fleetform",
            )
        if version not in VERSIONS:
            raise self.damaged(f"says that it has version {version}, which no release has written")

    def require_shape(self, columns: Iterable[tuple[str, str]]) -> None:
        """Refuse a ledger of this release's version without this release's tables."""
        if lacks := lacking(columns):
            raise self.damaged(f"has version {VERSION} and lacks {lacks}: {WHY}")

    def require_owner(self, connection: Statements, environment_uid: str) -> None:
        row = connection.execute("SELECT environment_uid FROM meta").fetchone()
        if row is None:
            raise self.damaged("has no environment uid")
        (owner,) = row
        if owner != environment_uid:
            raise ForeignLedgerError(
                f"{self.name} belongs to environment {short_uid(owner)}, not to"
                f" {short_uid(environment_uid)}",
                advice="check the uid in environment.yaml: it names the state, and never changes",
                owner=owner,
            )

    def require_current(self, connection: Statements, version: str, environment_uid: str) -> None:
        """Refuse everything but this environment's ledger in this release's version."""
        self.require_known(version)
        if version < VERSION:
            raise OlderLedgerError(
                f"{self.name} has version {version}, and this fleetform needs {VERSION}",
                advice=UPGRADE,
            )
        self.require_owner(connection, environment_uid)

    def damaged(self, what: str) -> DamagedLedgerError:
        return DamagedLedgerError(f"{self.name} {what}", advice=self.advice)


# -- files ----------------------------------------------------------------------------------------


def _at(path: Path) -> FoundLedger:
    return FoundLedger(f"the ledger {path}", RESTORE_FILE)


def require_sound(path: Path) -> None:
    """Refuse a file that cannot be a database; a missing one passes."""
    if path.exists() and not path.stat().st_size:
        raise _at(path).damaged("is empty: its content was lost")


def require_current(connection: sqlite3.Connection, path: Path, environment_uid: str) -> None:
    """Refuse everything but this environment's ledger in this release's version."""
    with translated():
        _at(path).require_current(connection, _version(connection, path), environment_uid)


def require_shape(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a ledger of this release's version without this release's tables."""
    with translated():
        _at(path).require_shape(columns_of(connection))


def _version(connection: sqlite3.Connection, path: Path) -> str:
    version = read_version(connection)
    if version is None:
        raise DamagedLedgerError(f"{path} is a database, but not a ledger", advice=RESTORE_FILE)
    return version


# Upgrades a ledger that an earlier release wrote, after a backup of it.
# Opening a ledger never upgrades it: an upgrade cannot be undone, so the command that asks for it says where the backup is.

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
        with translated():
            version = _version(connection, path)
            _at(path).require_known(version)
            _at(path).require_owner(connection, environment_uid)
            if version == VERSION:
                return None
            # A backup is of one moment, although others write.
            connection.execute("BEGIN")
            try:
                backup = keep(connection, version)
            finally:
                connection.execute("ROLLBACK")
            upgrade_schema(connection)
        require_shape(connection, path)
    return Upgraded(version, VERSION, backup)
