"""
The disk of a simulated machine: the real statements and the real schema on SQLite in memory.

One connection serves all seeds: to empty its tables takes a tenth of what SQLite needs to read
the schema and prepare the statements anew. A power cut loads what had been committed.
"""

from __future__ import annotations

import contextlib
import functools
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from fleetform.model.instance import Instance
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live
from fleetform.model.ports import Ids
from fleetform.store.database import Database, Transaction
from fleetform.store.instances import read_instances
from fleetform.store.ledger import StoredLedger
from fleetform.store.schema import create_schema
from fleetform.store.statements import LEASE, RAISE, RELEASE, LeaseStatements, take_lease
from simulation.apply.ports import Torn, Writer

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
        self._connection.execute("INSERT INTO leases (name) VALUES (?)", (LEASE,))
        self._ids = ids
        self._refuses: tuple[str, ...] = ()
        self._read: tuple[int, tuple[Instance, ...]] = (-1, ())
        self.ledger = StoredLedger(_Shared(self._connection), ids)

    def open(self, writer: Writer) -> StoredLedger:
        return StoredLedger(_Written(self, writer), self._ids)

    def connection(self) -> sqlite3.Connection:
        """What a transaction is carried out on that begins now."""
        if self._refuses:
            return _Full(self._connection, self._refuses)  # type: ignore[return-value]  # has what the store calls
        return self._connection

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
            instances=self._instances(serial),
            fence=fence,
            notes=(note,) if note else (),
            released_hosts=frozenset(uid for (uid,) in let_go),
        )

    def instances(self, fleet: str) -> Sequence[Instance]:
        ((serial,),) = self.ask("SELECT serial FROM meta")
        return [one for one in self._instances(serial) if one.fleet == fleet]

    def _instances(self, serial: int) -> tuple[Instance, ...]:
        """Read them once for each state of the ledger: every transaction raises its serial."""
        if self._read[0] != serial:
            self._read = (serial, read_instances(self._connection))
        return self._read[1]

    def take_lease(self, writer: Writer, who: str, *, term_ms: int, now_ms: int) -> int | None:
        _TOLD[0] = now_ms
        return take_lease(
            _Written(self, writer), _LEASE, who, who=who, term_ms=term_ms, now_ms=now_ms
        )

    def renew_lease(self, fence: int, *, term_ms: int, at_ms: int) -> bool:
        _TOLD[0] = at_ms
        values = (term_ms, LEASE, fence)
        return self._connection.execute(_LEASE.renew, values).rowcount == 1

    def release_lease(self, fence: int) -> None:
        self._connection.execute(RELEASE, (LEASE, fence))

    def lease_left_ms(self, now_ms: int) -> int:
        _TOLD[0] = now_ms
        ((holder, _, left_ms),) = self.ask(_LEASE.look, (LEASE,))
        return left_ms if holder else 0

    def image(self) -> bytes:
        return self._connection.serialize()

    def load(self, image: bytes) -> None:
        # Past a connection of its own: to deserialise into one that has prepared statements for
        # what was there before ended in a segmentation fault (SQLite 3.40).
        self._read = (-1, ())
        with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as copy:
            copy.deserialize(image)
            copy.backup(self._connection)

    def fill(self, refuses: tuple[str, ...]) -> None:
        self._refuses = refuses

    def drain(self) -> None:
        self._refuses = ()


class _Shared(Database):
    """The one connection of all processes, which nobody else writes while somebody reads."""

    @contextlib.contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        # A transaction would cost as much as most of what is read in it, and keep nobody out.
        yield self.connection


class _Written(_Shared):
    """One process's ledger: it may die at each of its transactions."""

    def __init__(self, disk: SimulatedDisk, writer: Writer) -> None:
        super().__init__(disk.connection())
        self._disk = disk
        self._writer = writer

    @contextlib.contextmanager
    def write(
        self, *, fence: int | None = None, takes_fence: bool = False
    ) -> Iterator[Transaction]:
        # The ledger's call, behind `contextlib`: nobody else could say what is written here.
        call = sys._getframe(2).f_code.co_name
        statements = self._writer.begins(call)
        connection = self._disk.connection()
        if statements:
            connection = _Torn(connection, statements)  # type: ignore[assignment]  # as above
        self.connection = connection
        with super().write(fence=fence, takes_fence=takes_fence) as transaction:
            yield transaction
        if statements:
            # It had changed nothing, so there was nothing to commit either.
            raise Torn
        self._writer.has_committed(call)

    def raise_fence(self, transaction: Transaction, who: str) -> int:
        fence = super().raise_fence(transaction, who)
        transaction.execute(RAISE, (fence, LEASE))
        return fence


_TOLD = [0]
"""What the database's clock shows, Unix milliseconds."""

_LEASE = LeaseStatements("clock_ms()")


class _Watched:
    """A connection that may refuse a statement before it is executed."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        # A disk may be full as well when somebody dies.
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
    """
    Its process dies after so many statements of a transaction, or when it would be committed.

    That it is rolled back then, is SQLite's to do; here it is the ledger's own way out.
    """

    def __init__(self, connection: sqlite3.Connection, statements: int) -> None:
        super().__init__(connection)
        self._left = statements

    def admit(self, statement: str) -> None:
        if statement != "ROLLBACK":
            self._left -= 1
            if self._left < 0 or statement == "COMMIT":
                raise Torn


class _Full(_Watched):
    """
    Its disk has no room, for another row or for whatever is written.

    Seeds share one database, so a limit on its pages would depend on what others have left there.
    """

    def __init__(self, connection: sqlite3.Connection, refuses: tuple[str, ...]) -> None:
        super().__init__(connection)
        self._refuses = refuses

    def admit(self, statement: str) -> None:
        if statement.startswith(self._refuses):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error


@functools.cache
def _connection() -> sqlite3.Connection:
    """An empty ledger with the schema of this release."""
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=512
    )
    # Small pages: what is copied at a power cut is mostly the empty rest of them.
    connection.execute("PRAGMA page_size = 1024")
    create_schema(connection)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.create_function("clock_ms", 0, lambda: _TOLD[0])
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
