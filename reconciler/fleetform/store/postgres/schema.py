"""
Whether a schema of a PostgreSQL database holds a ledger of fleetform, and how one gets there.

As on SQLite: a new ledger is created from `schema.sql`, a current one only looked at, and one of an earlier release
upgraded on request. Creating and upgrading are one transaction each, under a lock that every process takes first, so
that two first applies create one ledger.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from fleetform.model.live import LedgerStatus
from fleetform.model.ports import Clock, Ids
from fleetform.store.errors import (
    RESTORE_SCHEMA,
    DamagedLedgerError,
    LoginError,
    MissingLedgerError,
    ReadOnlyLedgerError,
)
from fleetform.store.postgres.connection import Connection
from fleetform.store.schema import VERSION
from fleetform.store.soundness import FoundLedger, Keep, Upgraded
from fleetform.store.statements import CREATE_META

__all__ = ["ensure_ledger", "require_current", "require_readable", "upgrade_ledger"]

_OLDEST_SERVER = 130_000
"""PostgreSQL 13 is the first that can be asked what became of a transaction."""


def require_current(connection: Connection, schema: str, environment_uid: str) -> None:
    """
    Refuse everything but this environment's ledger in this release's version.

    Raises:
        MissingLedgerError: There is none; nothing has been applied yet.
        LedgerError: It is older, newer, another environment's, or none of ours.
    """
    version = _version(connection, schema)
    if version is None:
        raise MissingLedgerError(
            f"there is no ledger in schema {schema}", advice="run `fleetform apply` to create one"
        )
    _in(schema).require_current(connection, version, environment_uid)


def _in(schema: str) -> FoundLedger:
    return FoundLedger(f"the ledger in schema {schema}", RESTORE_SCHEMA)


def require_readable(connection: Connection, schema: str) -> None:
    """
    Return if this user may read the ledger that is there, or if there is none.

    Without this check the server says that there is no such table, which would read as a lost ledger.

    Raises:
        LoginError: The user may not; names the one who may.
    """
    row = connection.execute(
        "SELECT CAST(current_user AS TEXT), CAST(pg_get_userbyid(n.nspowner) AS TEXT),"
        " has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"
        " FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid"
        " AND c.relname = 'alembic_version' WHERE n.nspname = ?",
        (schema,),
    ).fetchone()
    if row is None:
        return
    user, owner, may_read = row
    if not may_read:
        raise LoginError(
            f"there is a ledger in schema {schema}, and user {user} may not read it",
            advice=f"name the user who owns it, {owner}, in FLEETFORM_LEDGER, or let that one run"
            f" `GRANT {owner} TO {user}`",
        )


def ensure_ledger(
    connection: Connection, schema: str, environment_uid: str, ids: Ids, clock: Clock
) -> None:
    """
    Create the ledger where there is none; refuse an older one, and other schemas.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    _require_server(connection)
    with _alone(connection, schema):
        if _version(connection, schema) is None:
            _make(connection, schema, environment_uid, ids, clock)
        else:
            require_current(connection, schema, environment_uid)
            _require_shape(connection, schema)


def upgrade_ledger(
    connection: Connection, schema: str, environment_uid: str, keep: Keep
) -> Upgraded | None:
    """
    Upgrade a ledger of an earlier release; None where there is nothing to upgrade.

    Args:
        connection: To its database.
        schema: Where it is.
        environment_uid: Whose it is.
        keep: Writes the backup; where it cannot, nothing is changed.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    _require_server(connection)
    with _alone(connection, schema):
        version = _version(connection, schema)
        if version is None:
            return None
        _in(schema).require_known(version)
        _in(schema).require_owner(connection, environment_uid)
        if version == VERSION:
            return None
        # A backup of many rows is written to a file meanwhile, which the session's limits do not know.
        connection.script("SET LOCAL idle_in_transaction_session_timeout = 0")
        # Each writer begins by raising the serial in this row.
        connection.execute("SELECT 1 FROM meta FOR UPDATE")
        backup = keep(connection, version)
        _upgrade(connection, version)
        _require_shape(connection, schema)
    return Upgraded(version, VERSION, backup)


@contextmanager
def _alone(connection: Connection, schema: str) -> Iterator[None]:
    """Run one transaction while no other creates or upgrades the same ledger."""
    connection.script("BEGIN ISOLATION LEVEL READ COMMITTED")
    try:
        # Freed with the transaction. A process that waited sees what the first one has created.
        connection.execute("SELECT pg_advisory_xact_lock(hashtext(?))", (schema,))
        yield
        connection.script("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.script("ROLLBACK")
        raise


def _make(
    connection: Connection, schema: str, environment_uid: str, ids: Ids, clock: Clock
) -> None:
    there = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = ?", (schema,)
    ).fetchone()
    if there is None:
        _make_schema(connection, schema)
    connection.script(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
    connection.execute(
        CREATE_META,
        (environment_uid, ids.uid(), LedgerStatus.EMPTY, clock.now_ms()),
    )
    connection.execute("INSERT INTO leases (name) VALUES ('manager')")


def _make_schema(connection: Connection, schema: str) -> None:
    try:
        connection.script(f"CREATE SCHEMA {schema}")
    except asyncpg.InsufficientPrivilegeError as error:
        raise ReadOnlyLedgerError(
            f"the ledger's database does not permit this user to create the schema {schema}"
            f" ({error})",
            advice="let its owner run `GRANT CREATE ON DATABASE … TO …`; each environment has a"
            " schema there",
        ) from error


def _upgrade(connection: Connection, version: str) -> None:
    from fleetform.store.schema_generator import statements

    connection.script(";\n".join(statements("postgresql", after=version)))
    connection.execute("INSERT INTO leases (name) VALUES ('manager') ON CONFLICT (name) DO NOTHING")


def _version(connection: Connection, schema: str) -> str | None:
    """
    Return the version of the ledger's schema, or None where there is no ledger.

    Raises:
        DamagedLedgerError: There are tables, and they are no ledger.
        LoginError: This user may not look into the schema, or not read it.
    """
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables WHERE schemaname = ?",
            (schema,),
        )
    }
    if not tables:
        return None
    if not tables.issuperset({"alembic_version", "meta"}):
        raise DamagedLedgerError(
            f"schema {schema} has tables, but is not a ledger", advice=RESTORE_SCHEMA
        )
    require_readable(connection, schema)
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    if row is None:
        raise _in(schema).damaged("does not say its version")
    return str(row[0])


def _require_shape(connection: Connection, schema: str) -> None:
    columns = connection.execute(
        "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT)"
        " FROM information_schema.columns WHERE table_schema = ?",
        (schema,),
    )
    _in(schema).require_shape(columns.fetchall())


def _require_server(connection: Connection) -> None:
    number, encoding = connection.execute(
        "SELECT current_setting('server_version_num'), current_setting('server_encoding')"
    ).fetchone()
    if int(re.sub(r"\D", "", number)) < _OLDEST_SERVER:
        raise ReadOnlyLedgerError(
            f"the ledger's server is PostgreSQL {int(number) // 10_000}, and the oldest supported"
            " version is 13",
            advice="upgrade the server",
        )
    if encoding != "UTF8":
        raise ReadOnlyLedgerError(
            f"the ledger's database is encoded in {encoding}, which cannot hold every name",
            advice="create one with `createdb --encoding=UTF8 --template=template0`",
        )
