"""
The disk of a simulated machine: the real statements and the real schema on SQLite in memory.

One connection serves all seeds: to empty its tables takes a tenth of what SQLite needs to read
the schema and prepare the statements anew. A power cut loads what had been committed.
"""

# ruff: noqa: S608 -- names of tables come from the schema itself.

from __future__ import annotations

import contextlib
import functools
import sqlite3
from collections.abc import Sequence
from typing import Any

from fleetform.model.instance import Instance
from fleetform.model.live import LedgerStatus, Live
from fleetform.model.ports import Ids
from fleetform.simulate.apply.ports import Torn
from fleetform.store.database import Database
from fleetform.store.ledger import StoredLedger
from fleetform.store.live import read_instances
from fleetform.store.schema import create_schema

__all__ = ["SimulatedDisk"]


class SimulatedDisk:
    """Implements `simulate.apply.ports.Disk`."""

    def __init__(self, environment_uid: str, ids: Ids) -> None:
        self._connection = _connection()
        for statement in _emptying():
            self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO meta (id, environment_uid, ledger_id, status, created_at_ms)"
            " VALUES (1, ?, ?, ?, 0)",
            (environment_uid, ids.uid(), LedgerStatus.EMPTY),
        )
        self._database = Database(self._connection)
        self._full = False
        self.ledger = StoredLedger(self._database, ids)

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()

    def outline(self) -> Live:
        ((environment_uid, ledger_id, epoch, status, note, serial, fence),) = self.ask(
            "SELECT environment_uid, ledger_id, epoch, status, note, serial, fence FROM meta"
        )
        let_go = self.ask("SELECT uid FROM instances WHERE state = 'terminated' AND fleet = ''")
        return Live(
            environment_uid=environment_uid,
            ledger_id=ledger_id,
            epoch=epoch,
            status=LedgerStatus(status),
            serial=serial,
            resources={},
            instances=read_instances(self._connection),
            fence=fence,
            notes=(note,) if note else (),
            let_go=frozenset(uid for (uid,) in let_go),
        )

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
        if self._full:
            self.fill()
        else:
            self.drain()
        return torn

    def fill(self) -> None:
        self._database.connection = _Full(self._connection)  # type: ignore[assignment]
        self._full = True

    def drain(self) -> None:
        self._database.connection = self._connection
        self._full = False


class _Watched:
    """A connection that may refuse a statement before it is executed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        self.admit(statement)
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Any) -> sqlite3.Cursor:
        self.admit(statement)
        return self._connection.executemany(statement, values)

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def admit(self, statement: str) -> None:
        """Raise what executing this statement would."""


class _Torn(_Watched):
    """Its process dies after so many statements of a transaction."""

    def __init__(self, connection: sqlite3.Connection, statements: int) -> None:
        super().__init__(connection)
        self._left = statements

    def admit(self, statement: str) -> None:
        if statement != "ROLLBACK":
            self._left -= 1
            if self._left < 0:
                raise Torn


class _Full(_Watched):
    """
    Its disk has no room for another row.

    Seeds share one database, so a limit on its pages would depend on what others have left there.
    """

    def admit(self, statement: str) -> None:
        if statement.startswith("INSERT"):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error


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
def _emptying() -> tuple[str, ...]:
    """Statements that take out the rows of every table, what refers to others first."""
    rows = _connection().execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'alembic_version'"
        " AND name NOT LIKE 'sqlite_stat%'"
    )
    names = {name for (name,) in rows}
    first = ("units", "allocations", "jobs", "attempts", "operations", "applies")
    return tuple(f"DELETE FROM {name}" for name in (*first, *sorted(names - set(first))))
