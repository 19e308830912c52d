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
from fleetform.model.ports import Ledger, Reader
from fleetform.store.opening import open_ledger
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres, open_postgres_snapshot
from fleetform.store.reads import open_snapshot


class SqliteSite:
    """A file of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ledger.db"

    def open(self) -> Ledger:
        return open_ledger(self._path, ENVIRONMENT, CountingIds(), StillClock())

    def look(self) -> Reader:
        return open_snapshot(self._path, ENVIRONMENT)


class PostgresSite:
    """A schema of a real server, which no earlier test has left anything in."""

    def __init__(self, url: str) -> None:
        self._address = Address.parse(url)
        schema = schema_of(ENVIRONMENT)
        connection = Connection(self._address, schema=schema)
        connection.script(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        connection.close()

    def open(self) -> Ledger:
        return open_postgres(self._address, ENVIRONMENT, CountingIds(), StillClock())

    def look(self) -> Reader:
        return open_postgres_snapshot(self._address, ENVIRONMENT)


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
