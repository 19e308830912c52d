"""The ledgers that one suite is for; what a call means is in the docstrings of `model.ports`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contract.ledgers import (
    ENVIRONMENT,
    CountingIds,
    Desk,
    StillClock,
)
from fleetform.model.ledger import LedgerStatus
from fleetform.model.ports import Ledger, Reader
from fleetform.store.opening import open_ledger
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres, open_postgres_snapshot
from fleetform.store.reads import open_snapshot
from fleetform.store.statements import CREATE_META, LEASE


class SqliteSite:
    """A file of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.db"

    def open(self) -> Ledger:
        return open_ledger(self._path, ENVIRONMENT, CountingIds(), StillClock())

    def look(self) -> Reader:
        return open_snapshot(self._path, ENVIRONMENT)


class PostgresSite:
    """A ledger of a real server, in which no earlier test has left anything."""

    def __init__(self, url: str) -> None:
        self._address = Address.parse(url)
        self._is_first = _empty(self._address)

    def open(self) -> Ledger:
        ids = CountingIds()
        if self._is_first:
            # The ledger's own, as if this call had created it.
            ids.uid()
        self._is_first = False
        return open_postgres(self._address, ENVIRONMENT, ids, StillClock())

    def look(self) -> Reader:
        return open_postgres_snapshot(self._address, ENVIRONMENT)


def _empty(address: Address) -> bool:
    """
    Leave the ledger as it was when it was created; return whether there is one.

    To create one takes longer than most of these tests: a file for each table and index.
    """
    schema = schema_of(ENVIRONMENT)
    connection = Connection(address, schema=schema)
    try:
        tables = connection.execute(
            "SELECT CAST(tablename AS TEXT) FROM pg_catalog.pg_tables"
            " WHERE schemaname = ? AND tablename <> 'alembic_version'",
            (schema,),
        ).fetchall()
        if not tables:
            return False
        connection.script("BEGIN")
        # What refers to other rows goes in any order.
        connection.script("SET LOCAL session_replication_role = replica")
        connection.script("; ".join(f"DELETE FROM {table}" for (table,) in tables))
        connection.execute(
            "SELECT setval(CAST(schemaname || '.' || sequencename AS regclass), 1, false)"
            " FROM pg_catalog.pg_sequences WHERE schemaname = ?",
            (schema,),
        )
        connection.execute(
            CREATE_META,
            (ENVIRONMENT, CountingIds().uid(), LedgerStatus.EMPTY, StillClock().now_ms()),
        )
        connection.execute("INSERT INTO leases (name) VALUES (?)", (LEASE,))
        connection.script("COMMIT")
    finally:
        connection.close()
    return True


Site = SqliteSite | PostgresSite


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    """Where the test's one ledger is."""
    if request.param == "sqlite":
        return SqliteSite(tmp_path)
    return PostgresSite(request.getfixturevalue("postgres").url)


@pytest.fixture
def reopen(site: Site) -> Callable[[], Ledger]:
    """Open the test's one ledger once more, as another process would."""
    return site.open


@pytest.fixture
def look(site: Site) -> Callable[[], Reader]:
    """Open it as those do who only look."""
    return site.look


@pytest.fixture
def ledger(reopen: Callable[[], Ledger]) -> Iterator[Ledger]:
    ledger = reopen()
    yield ledger
    ledger.close()


@pytest.fixture
def desk(ledger: Ledger) -> Desk:
    return Desk.of(ledger)


@pytest.fixture
def two_hosts(ledger: Ledger) -> Desk:
    return Desk.of(ledger, nodes=2)
