"""From an address to a ledger on PostgreSQL: made, opened, upgraded, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import asyncpg

from fleetform.model.ledger import LedgerStatus
from fleetform.model.ports import Clock, Ids
from fleetform.store.database import Transaction
from fleetform.store.errors import (
    RESTORE_SCHEMA,
    DamagedLedgerError,
    LoginError,
    MissingLedgerError,
    ReadOnlyLedgerError,
)
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres.address import SCHEMA_PREFIX, Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.database import PostgresDatabase
from fleetform.store.postgres.errors import translated
from fleetform.store.reads import Reads
from fleetform.store.schema import VERSION
from fleetform.store.soundness import FoundLedger, Keep, Upgraded
from fleetform.store.statements import CREATE_META

__all__ = [
    "KEEP_SECONDS",
    "connect",
    "ensure_ledger",
    "environments_in",
    "open_postgres",
    "open_postgres_snapshot",
    "open_postgres_to_keep",
    "require_current",
    "require_readable",
    "upgrade_ledger",
    "upgrade_postgres",
]


KEEP_SECONDS = 2.0
"""How long a plan that was shown waits to be written down; a person waits with it."""


def connect(
    address: Address,
    environment_uid: str,
    check: Callable[[Connection, str, str], None],
    *,
    read_only: bool = False,
    who: str = "fleetform",
    wait_seconds: float | None = None,
) -> PostgresDatabase:
    """
    Connect to the ledger of an environment.

    Args:
        address: Of its database.
        environment_uid: Of the environment.
        check: Accepts or refuses what is in its schema: (connection, schema, environment uid).
        read_only: Refuse every statement that writes.
        who: The name of the connection for the server's administrator.
        wait_seconds: See `Connection`.

    Raises:
        LedgerError: By kind, see `errors`.
    """
    schema = schema_of(environment_uid)
    with translated(address):
        connection = Connection(
            address, schema=schema, read_only=read_only, who=who, wait_seconds=wait_seconds
        )
        try:
            check(connection, schema, environment_uid)
        except BaseException:
            connection.close()
            raise
    return PostgresDatabase(
        address,
        connection,
        schema=schema,
        read_only=read_only,
        who=who,
        wait_seconds=wait_seconds,
    )


def open_postgres(
    address: Address, environment_uid: str, ids: Ids, clock: Clock, *, who: str = "fleetform"
) -> StoredLedger:
    """
    Open the environment's ledger for writing; create it if there is none.

    Args:
        address: Its database; the ledger is a schema of its own there.
        environment_uid: Whose ledger.
        ids: Mints the id of a new ledger.
        clock: Says when it was made.
        who: How the server's administrator sees the connection (`application_name`).

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    check = partial(ensure_ledger, ids=ids, clock=clock)
    return StoredLedger(connect(address, environment_uid, check, who=who), ids)


def open_postgres_snapshot(address: Address, environment_uid: str) -> Reads:
    """
    Open the environment's ledger for reading.

    Raises:
        MissingLedgerError: There is none; nothing has been applied yet.
        LedgerError: By kind, see `errors`.
    """
    return Reads(connect(address, environment_uid, require_current, read_only=True))


def upgrade_postgres(address: Address, environment_uid: str, keep: Keep) -> Upgraded | None:
    """
    Upgrade the environment's ledger where an earlier release wrote it; see `soundness.upgrade_file`.

    Raises:
        LedgerError: By kind, see `errors`; nothing was changed.
    """
    schema = schema_of(environment_uid)
    with translated(address):
        connection = Connection(address, schema=schema)
        try:
            return upgrade_ledger(connection, schema, environment_uid, keep)
        finally:
            connection.close()


def environments_in(address: Address) -> tuple[str, ...]:
    """
    Return the uids of the environments whose ledgers this user may read in a database, in order.

    Raises:
        LoginError: There are ledgers, and this user may read none of them.
        LedgerError: It cannot be reached or used.
    """
    with translated(address):
        connection = Connection(address, schema="public", read_only=True)
        try:
            rows = connection.execute(
                "SELECT CAST(n.nspname AS TEXT), has_schema_privilege(n.oid, 'USAGE')"
                " AND has_table_privilege(c.oid, 'SELECT')"
                " FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c"
                " ON c.relnamespace = n.oid AND c.relname = 'leases' AND c.relkind = 'r'"
                " WHERE starts_with(n.nspname, CAST(? AS TEXT)) ORDER BY 1",
                (SCHEMA_PREFIX,),
            ).fetchall()
            readable = [name for name, may_read in rows if may_read]
            uids = _owners_of(connection, readable)
        finally:
            connection.close()
    if rows and not readable:
        raise LoginError(
            f"the ledger at {address.shown} has the ledgers of {len(rows)} environments, and this"
            " user may read none of them",
            advice="name a user who may in FLEETFORM_LEDGER",
        )
    return uids


def _owners_of(connection: Connection, schemas: Sequence[str]) -> tuple[str, ...]:
    """Return the uids of the environments whose ledgers are in these schemas, in order."""
    return tuple(sorted(filter(None, (_owner_of(connection, schema) for schema in schemas))))


def _owner_of(connection: Connection, schema: str) -> str | None:
    # A name of a schema has no dashes, and that of a long uid is a digest of it.
    query = f"SELECT environment_uid FROM {schema}.meta"  # noqa: S608 -- made by `schema_of`
    try:
        row = connection.execute(query).fetchone()
    except asyncpg.UndefinedTableError:
        # Damaged, or dropped since it was listed: the others are listed all the same.
        return schema.removeprefix(SCHEMA_PREFIX).replace("_", "-")
    return None if row is None else str(row[0])


@contextmanager
def open_postgres_to_keep(address: Address, environment_uid: str) -> Iterator[Transaction]:
    """
    Run one write transaction on an existing ledger of this release's version.

    Raises:
        LedgerError: It cannot be written, or not now; nothing was.
    """
    database = connect(address, environment_uid, require_current, wait_seconds=KEEP_SECONDS)
    try:
        with database.write() as transaction:
            yield transaction
    finally:
        database.close()


# Whether a schema of a PostgreSQL database holds a ledger of fleetform, and how one gets there.
# As on SQLite: a new ledger is created from `schema.sql`, a current one only looked at, and one of an earlier release
# upgraded on request. Creating and upgrading are one transaction each, under a lock that every process takes first, so
# that two first applies create one ledger.

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
