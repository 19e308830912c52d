"""Ledgers on a real server, each test's in a schema of its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from contract.ledgers import ENVIRONMENT, CountingIds, StillClock
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres
from postgres_server import PostgresServer


@pytest.fixture
def address(postgres: PostgresServer) -> Address:
    return Address.parse(postgres.url)


@pytest.fixture
def uid() -> str:
    """The uid of an environment that nobody else has."""
    return os.urandom(16).hex()


@pytest.fixture
def connect(address: Address) -> Iterator[Callable[[], StoredLedger]]:
    """Open the test's one ledger, as often as it is called: each is another process's."""
    schema = schema_of(ENVIRONMENT)
    connection = Connection(address, schema=schema)
    connection.script(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    connection.close()
    opened: list[StoredLedger] = []

    def open_one() -> StoredLedger:
        ledger = open_postgres(address, ENVIRONMENT, CountingIds(len(opened) * 1000), StillClock())
        opened.append(ledger)
        return ledger

    yield open_one
    for ledger in opened:
        ledger.close()
