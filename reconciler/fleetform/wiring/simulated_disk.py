"""
The disk of a simulated machine: the real statements and the real schema on SQLite in memory.

One connection serves all seeds: to empty its tables takes a tenth of what SQLite needs to read
the schema and prepare the statements anew. A power cut loads what had been committed.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from typing import Any

from fleetform.model.instance import Instance
from fleetform.model.live import LedgerStatus
from fleetform.model.ports import Ids
from fleetform.simulate.apply.ports import Torn
from fleetform.store.database import Database
from fleetform.store.ledger import SqliteLedger
from fleetform.store.live import read_instances
from fleetform.store.schema import create_schema

__all__ = ["SimulatedDisk"]


class SimulatedDisk:
    """Implements `simulate.apply.ports.Disk`."""

    def __init__(self, environment_uid: str, ids: Ids) -> None:
        self._connection = _connection()
        for table in _tables():
            self._connection.execute(f"DELETE FROM {table}")
        self._connection.execute(
            "INSERT INTO meta (id, environment_uid, ledger_id, status, created_at_ms)"
            " VALUES (1, ?, ?, ?, 0)",
            (environment_uid, ids.uid(), LedgerStatus.EMPTY),
        )
        self._database = Database(self._connection)
        self.ledger = SqliteLedger(self._database, ids)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def instances(self, fleet: str) -> Sequence[Instance]:
        return [one for one in read_instances(self._connection) if one.fleet == fleet]

    def image(self) -> bytes:
        return self._connection.serialize()

    def load(self, image: bytes) -> None:
        # Past a connection of its own: to deserialise into one that has prepared statements for
        # what was there before ended in a segmentation fault (SQLite 3.40).
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            copy.deserialize(image)
            copy.backup(self._connection)

    def tear(self, statements: int) -> None:
        self._database.connection = _Torn(self._connection, statements)  # type: ignore[assignment]

    def untear(self) -> bool:
        torn = isinstance(self._database.connection, _Torn)
        self._database.connection = self._connection
        return torn

    def fill(self) -> None:
        # Seeds share a connection: free pages that another has left would be room for this one.
        self._connection.execute("VACUUM")
        ((pages,),) = self.ask("PRAGMA page_count")
        self._connection.execute(f"PRAGMA max_page_count = {pages}")

    def drain(self) -> None:
        self._connection.execute("PRAGMA max_page_count = 1073741823")


class _Torn:
    """A connection whose process dies after so many statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection, statements: int) -> None:
        self._connection = connection
        self._left = statements

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        if statement != "ROLLBACK":
            self._count()
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:
        self._count()
        return self._connection.executemany(statement, values)

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Torn


@functools.cache
def _connection() -> sqlite3.Connection:
    """An empty ledger with the schema that the migrations make."""
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
    )
    # Small pages: what is copied at a power cut is mostly the empty rest of them.
    connection.execute("PRAGMA page_size = 1024")
    create_schema(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


@functools.cache
def _tables() -> tuple[str, ...]:
    """Those with rows of a ledger, what refers to others first."""
    rows = _connection().execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'alembic_version'"
        " AND name NOT LIKE 'sqlite_stat%'"
    )
    names = {name for (name,) in rows}
    first = ("units", "allocations", "jobs", "attempts", "operations", "applies")
    return (*first, *sorted(names - set(first)))
