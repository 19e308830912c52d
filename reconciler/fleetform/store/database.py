"""
One connection to a ledger's file, and what a transaction on it promises.

A write transaction takes the write lock at its start (`BEGIN IMMEDIATE`): one that begins by
reading and is upgraded fails at once, whatever the busy timeout. It raises the ledger's serial,
checks the fence in the same statement, and is rolled back without a sync when it changed
nothing else. WAL with `synchronous=FULL`: a commit that returned survives a power cut.

Statements are written for SQLite and run on the standard library's driver: a row takes a
seventh of the time it takes through SQLAlchemy's Core, and a process starts 190 ms earlier.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from fleetform.model.refusals import FenceLost, LedgerUnusable
from fleetform.store.errors import (
    RESTORE_FILE,
    DamagedLedgerError,
    LedgerBusyError,
    LedgerError,
    LedgerFullError,
    MissingLedgerError,
    ReadOnlyLedgerError,
)
from fleetform.store.schema import WHY, is_of_another_shape
from fleetform.store.statements import NEXT_FENCE

if TYPE_CHECKING:
    from fleetform.store.lock import FileLocation
    from fleetform.store.statements import Statements

__all__ = ["BUSY_SECONDS", "Database", "Transaction", "connect", "connect_reading", "make_durable", "to_json",
           "translated"]  # fmt: skip

BUSY_SECONDS = 10.0
"""
How long a writer waits for another process's transaction. The longest one, ten thousand
submissions, takes under two seconds; a waiting writer sleeps in SQLite's busy handler.
"""

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def to_json(value: Any) -> str:
    """Write what is stored as text; the same value gives the same text."""
    return _ENCODER.encode(value)


class Transaction:
    """
    What the rooms of the ledger write through, valid until its block ends.

    Events are collected and written last, in the order they were logged.
    """

    __slots__ = ("_events", "execute", "many")

    def __init__(self, connection: Statements) -> None:
        self.execute = connection.execute
        self.many = connection.executemany
        self._events: list[tuple[Any, ...]] = []

    def one(self, statement: str, values: Sequence[Any] = ()) -> tuple[Any, ...] | None:
        """Return the first row, or None."""
        row: tuple[Any, ...] | None = self.execute(statement, values).fetchone()
        return row

    def log(
        self,
        kind: str,
        at_ms: int,
        message: str,
        resource: tuple[str, str] = ("", ""),
        *,
        attempt: int | None = None,
        rank: int | None = None,
        data: str = "",
    ) -> None:
        """Append an event; `data` is JSON text."""
        self._events.append((kind, at_ms, message, *resource, attempt, rank, data))

    def flush(self) -> None:
        if self._events:
            self.many(
                "INSERT INTO events (kind, at_ms, message, resource_kind, resource_name,"
                " attempt, rank, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                self._events,
            )
            self._events = []


class Database:
    """
    A connection with a lock: one transaction at a time, from whatever thread.

    Implements `statements.Storage`.

    Production uses one writer thread; the lock keeps a caller beside it from mixing two
    transactions into one.
    """

    poll_seconds = 0.02
    """A look takes some ten microseconds."""

    def __init__(
        self, connection: sqlite3.Connection, location: FileLocation | None = None
    ) -> None:
        self.connection = connection
        self.lock = threading.RLock()
        # None: it is in memory.
        self._location = location

    @contextmanager
    def write(
        self,
        *,
        fence: int | None = None,
        takes_fence: bool = False,
    ) -> Iterator[Transaction]:
        """
        Run one write transaction.

        Raises:
            FenceLost: `fence` is given and not the newest; nothing was written.
            MovedLedgerError: Its file is not there any more; nothing was written.
            LedgerError: See `translated`; nothing was written.
        """
        connection = self.connection
        self._require_in_place()
        with self.lock, translated():
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._raise_serial(fence)
                before = connection.total_changes
                transaction = Transaction(connection)
                yield transaction
                transaction.flush()
                if connection.total_changes == before:
                    connection.execute("ROLLBACK")
                else:
                    connection.execute("COMMIT")
            except BaseException:
                # A full disk may have rolled back by itself.
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Run several statements on one state of the ledger."""
        connection = self.connection
        self._require_in_place()
        with self.lock, translated():
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def serial(self) -> int:
        """Return SQLite's own count of what other connections committed."""
        self._require_in_place()
        with self.lock:
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        return int(version)

    def glance(self) -> int | None:
        """
        Return the serial where that needs no lock; it takes some microseconds.

        None also where something is wrong: `serial` says what.
        """
        if not self.lock.acquire(blocking=False):
            return None
        try:
            self._require_in_place()
            (version,) = self.connection.execute("PRAGMA data_version").fetchone()
        except (sqlite3.Error, LedgerUnusable):
            return None
        finally:
            self.lock.release()
        return int(version)

    def raise_fence(self, transaction: Transaction, who: str) -> int:
        row = transaction.one(NEXT_FENCE, (who,))
        assert row is not None
        return int(row[0])

    def renumber(self, transaction: Transaction) -> None:
        """SQLite looks at the rows itself."""

    def flaws(self) -> tuple[str, ...]:
        """Say what is wrong with the file as a database, a sentence each."""
        with self.read() as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(20)")]
            flaws = [] if found == ["ok"] else [f"the file is damaged: {one}" for one in found]
            for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check"):
                where = f"row {row} of {table}" if row is not None else f"a row of {table}"
                flaws.append(f"{where} refers to a row of {parent} that does not exist")
            return tuple(flaws)

    def copy(self) -> Database:
        """Copy all that is committed into memory."""
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        with self.lock, translated():
            self.connection.backup(copy)
        copy.execute("PRAGMA foreign_keys = ON")
        return Database(copy)

    def close(self) -> None:
        with self.lock:
            self.connection.close()

    def _require_in_place(self) -> None:
        if self._location is not None:
            self._location.require()

    def _raise_serial(self, fence: int | None) -> None:
        if fence is None:
            self.connection.execute("UPDATE meta SET serial = serial + 1")
            return
        raised = self.connection.execute(
            "UPDATE meta SET serial = serial + 1 WHERE fence = ?", (fence,)
        )
        if not raised.rowcount:
            newest, manager = self.connection.execute("SELECT fence, manager FROM meta").fetchone()
            raise FenceLost(f"fence {fence} is outdated: {manager} has fence {newest}")


# -- connections --------------------------------------------------------------------------

_WAL_SECONDS = 0.01
"""Between two tries to switch a new file to its log; the switch takes less."""


def connect(path: Path | str) -> sqlite3.Connection:
    """Open an existing file for writing; nothing is written before `make_durable`."""
    connection = _open(path, "rw")
    with translated():
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    return connection


def make_durable(connection: sqlite3.Connection, *, is_synchronous: bool = True) -> None:
    """
    Set what a ledger's writer promises; the first of these changes the file's header.

    Where nothing is done because of what was committed, the disk is not waited for: a power cut
    takes the last commits of those who did not wait, whole and in their order, until somebody who
    waits commits after them (sqlite.org/pragma.html, `synchronous`).
    """
    with translated():
        _use_wal(connection)
        connection.execute(f"PRAGMA synchronous = {'FULL' if is_synchronous else 'NORMAL'}")
        connection.execute("PRAGMA foreign_keys = ON")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Wait for another process that makes the same switch: SQLite itself does not, whatever its timeout."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_WAL_SECONDS)
        else:
            return


def connect_reading(path: Path | str) -> sqlite3.Connection:
    """Open an existing file for reading only."""
    connection = _open(path, "ro")
    with translated():
        connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    return connection


def _open(path: Path | str, mode: str) -> sqlite3.Connection:
    if not Path(path).exists():
        raise MissingLedgerError(
            f"there is no ledger at {path}", advice="run `fleetform apply` to create one"
        )
    with translated():
        return sqlite3.connect(
            f"file:{quote(str(path))}?mode={mode}",
            uri=True,
            isolation_level=None,
            # `Database` holds a lock; SQLite itself is built for use by many threads.
            check_same_thread=False,
            cached_statements=256,
        )


# -- errors -------------------------------------------------------------------------------

# By primary result code (sqlite.org/rescode); what is not here is a fault of ours and stays
# what it is.
_KINDS: dict[int, tuple[type[LedgerError], str, str]] = {
    sqlite3.SQLITE_BUSY: (
        LedgerBusyError,
        "another process is writing the ledger",
        "try again when it is done; if it hangs, `fleetform lock show` names the one to end",
    ),
    sqlite3.SQLITE_LOCKED: (
        LedgerBusyError,
        "another connection is writing the ledger",
        "try again when it is done",
    ),
    sqlite3.SQLITE_FULL: (
        LedgerFullError,
        "the disk with the ledger is full; nothing was written and nothing is lost",
        "free space on it and run the same command again",
    ),
    sqlite3.SQLITE_READONLY: (
        ReadOnlyLedgerError,
        "the ledger cannot be written",
        "make its file and its folder writable for this user",
    ),
    sqlite3.SQLITE_PERM: (
        ReadOnlyLedgerError,
        "this user has no permission for the ledger's file",
        "change its owner back",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        ReadOnlyLedgerError,
        "the ledger cannot be opened",
        "make its file and its folder readable and writable for this user",
    ),
    sqlite3.SQLITE_IOERR: (
        LedgerFullError,
        "the disk of the ledger reports errors; the transaction was not committed",
        "check the system's log and run the same command again",
    ),
    sqlite3.SQLITE_CORRUPT: (DamagedLedgerError, "the ledger's file is damaged", RESTORE_FILE),
    sqlite3.SQLITE_NOTADB: (
        DamagedLedgerError,
        "the ledger's file is not a database",
        RESTORE_FILE,
    ),
}


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours, by SQLite's result code."""
    try:
        yield
    except sqlite3.Error as error:
        # Errors of the driver itself, such as a closed connection, have no code.
        code = getattr(error, "sqlite_errorcode", None)
        # An extended code carries the primary one in its lowest byte.
        kind = _KINDS.get(code & 0xFF) if code is not None else None
        if kind is None and is_of_another_shape(error):
            kind = (
                DamagedLedgerError,
                f"the ledger's tables are not those of this release: {WHY}",
                RESTORE_FILE,
            )
        if kind is None:
            raise
        error_type, message, advice = kind
        raise error_type(f"{message} ({error})", advice=advice) from error
