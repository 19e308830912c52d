"""From an address to a ledger on PostgreSQL: made, opened, upgraded, or refused with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import asyncpg

from fleetform.model.ports import Clock, Ids
from fleetform.store.database import Transaction
from fleetform.store.errors import LoginError
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres.address import SCHEMA_PREFIX, Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.database import PostgresDatabase
from fleetform.store.postgres.errors import translated
from fleetform.store.postgres.schema import ensure_ledger, require_current, upgrade_ledger
from fleetform.store.snapshot import Snapshot
from fleetform.store.soundness import Keep, Upgraded

__all__ = [
    "KEEP_SECONDS",
    "connect",
    "environments_in",
    "open_postgres",
    "open_postgres_snapshot",
    "open_postgres_to_keep",
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


def open_postgres_snapshot(address: Address, environment_uid: str) -> Snapshot:
    """
    Open the environment's ledger for reading.

    Raises:
        MissingLedgerError: There is none; nothing has been applied yet.
        LedgerError: By kind, see `errors`.
    """
    return Snapshot(connect(address, environment_uid, require_current, read_only=True))


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
