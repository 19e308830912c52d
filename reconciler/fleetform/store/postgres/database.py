"""
A ledger's transactions on PostgreSQL, with the promises that they have on SQLite.

READ COMMITTED, and one writer at a time: a write transaction begins by raising the serial in the
only row of `meta`, and whoever comes second waits there until the first has committed, then sees
all of it. So nothing is ever tried again because of a conflict, and what the rooms compare and
write is as if they were alone (ADR 17).

A protected transaction begins by holding the lease's row under its fence (`FOR KEY SHARE`):
whoever takes the lease over waits for its end, and afterwards no statement of the old holder
finds its row. A plain SELECT would let it commit (`tests/integration/postgres` shows it).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import asyncpg

from fleetform.model.refusals import FenceLost
from fleetform.store.database import Database, Transaction
from fleetform.store.errors import UnreachableLedgerError
from fleetform.store.postgres.address import Address
from fleetform.store.postgres.connection import IDLE_SECONDS, Connection
from fleetform.store.postgres.errors import is_lost, translated
from fleetform.store.statements import LEASE, NEXT_FENCE, RAISE

if TYPE_CHECKING:
    from fleetform.store.statements import Rows

__all__ = ["PostgresDatabase", "end_stalled"]


_NUMBERED = ("events", "applies", "usage", "overrides", "snapshots")
"""Tables whose rows the database numbers."""

_SETTLE_SECONDS = 5.0
"""How long the fate of a commit without an answer is asked for."""

_PAUSE_SECONDS = 0.1


class PostgresDatabase:
    """
    A connection with a lock, opened again when it is lost. Implements `statements.Storage`.

    A transaction whose connection is lost raises `UnreachableLedgerError`; the next one tries a
    new connection.
    """

    poll_seconds = 0.1
    """A look is an exchange with the server; ten a second cost it nothing that can be measured."""

    def __init__(
        self,
        address: Address,
        connection: Connection,
        *,
        schema: str,
        read_only: bool = False,
        who: str = "fleetform",
        wait_seconds: float | None = None,
    ) -> None:
        self.address = address
        self.schema = schema
        self.lock = threading.RLock()
        self._read_only = read_only
        self._who = who
        self._wait_seconds = wait_seconds
        self._own_commits = 0
        self._connection = connection

    # -- transactions -------------------------------------------------------------------------

    @contextmanager
    def write(
        self, *, fence: int | None = None, takes_fence: bool = False
    ) -> Iterator[Transaction]:
        """
        Run one write transaction.

        Locks are taken in one order, the lease's row before the one of `meta`.

        Raises:
            FenceLost: `fence` is given and not the newest; nothing was written.
            LedgerError: See `errors.translated`; nothing was written, or it says that nobody
                knows.
        """
        with self.lock, translated(self.address):
            connection, number = self._enter(fence, takes_fence=takes_fence)
            try:
                before = connection.total_changes
                transaction = Transaction(connection)
                yield transaction
                transaction.flush()
                if connection.total_changes == before:
                    connection.execute("ROLLBACK")
                    return
            except BaseException:
                self._undo(connection)
                raise
            self._commit(connection, number)

    def _enter(self, fence: int | None, *, takes_fence: bool) -> tuple[Connection, str]:
        """Become the only writer; returns the transaction's own number as well."""
        try:
            return self._try_to_enter(fence, takes_fence=takes_fence)
        except asyncpg.LockNotAvailableError:
            if not end_stalled(self._usable()):
                raise
        return self._try_to_enter(fence, takes_fence=takes_fence)

    def _try_to_enter(self, fence: int | None, *, takes_fence: bool) -> tuple[Connection, str]:
        connection = self._begin("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            if takes_fence:
                connection.execute("SELECT 1 FROM leases WHERE name = ? FOR UPDATE", (LEASE,))
            if fence is not None:
                _hold_lease(connection, fence)
            return connection, _raise_serial(connection)
        except BaseException:
            self._undo(connection)
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Run several statements on one state of the ledger."""
        with self.lock, translated(self.address):
            connection = self._begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield connection
            finally:
                self._undo(connection)

    def serial(self) -> int:
        """
        Return the ledger's serial without what this connection has raised it by.

        It changes with others' commits only: no row of PostgreSQL says who wrote it.
        """
        row = self.alone("SELECT serial FROM meta").fetchone()
        return int(row[0]) - self._own_commits

    def glance(self) -> int | None:
        """Return nothing: a server is always asked."""
        return None

    def alone(self, statement: str, values: Sequence[Any] = ()) -> Rows:
        """
        Carry out one statement that may be carried out twice, as a transaction of its own.

        A lost connection is made anew once.
        """
        with self.lock, translated(self.address):
            try:
                return self._usable().execute(statement, values)
            except BaseException as error:
                if not is_lost(error):
                    raise
            return self._usable().execute(statement, values)

    def raise_fence(self, transaction: Transaction, who: str) -> int:
        row = transaction.one(NEXT_FENCE, (who,))
        assert row is not None
        fence = int(row[0])
        transaction.execute(RAISE, (fence, LEASE))
        return fence

    def renumber(self, transaction: Transaction) -> None:
        # Below their highest row, sequences would give out numbers that are taken.
        for table in _NUMBERED:
            transaction.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'number'),"
                f" (SELECT coalesce(max(number), 0) + 1 FROM {table}), false)"
            )

    def flaws(self) -> tuple[str, ...]:
        """The server keeps its pages and its constraints itself."""
        return ()

    def copy(self) -> Database:
        """Copy all that is committed into a SQLite database in memory."""
        from fleetform.store.backup import copy_to_memory

        with self.read() as connection:
            return copy_to_memory(connection)

    def close(self) -> None:
        with self.lock:
            self._connection.close()

    # -- the connection -----------------------------------------------------------------------

    def _connect(self) -> Connection:
        return Connection(
            self.address,
            schema=self.schema,
            read_only=self._read_only,
            who=self._who,
            wait_seconds=self._wait_seconds,
        )

    def _usable(self) -> Connection:
        if self._connection.is_lost:
            self._connection.drop()
            self._connection = self._connect()
        return self._connection

    def _begin(self, statement: str) -> Connection:
        """Begin on this connection, or on a new one if the server has ended it meanwhile."""
        connection = self._usable()
        try:
            connection.script(statement)
        except BaseException as error:
            if not is_lost(error):
                raise
            connection.drop()
            connection = self._connection = self._connect()
            connection.script(statement)
        return connection

    def _undo(self, connection: Connection) -> None:
        """Roll back; a connection on which that cannot be done is closed, which does the same."""
        try:
            if connection.in_transaction:
                connection.script("ROLLBACK")
        except Exception:  # noqa: BLE001 -- what led here is what the caller has to hear of
            connection.drop()
        if connection.is_lost:
            connection.drop()
            # Opened anew by the next transaction.

    def _commit(self, connection: Connection, number: str) -> None:
        try:
            # Of a transaction in which a statement failed it says ROLLBACK.
            assert connection.script("COMMIT") == "COMMIT", "a failure inside was passed over"
        except BaseException as error:
            if not is_lost(error):
                self._undo(connection)
                raise
            connection.drop()
            if not self._was_committed(number):
                raise
        self._own_commits += 1

    def _was_committed(self, number: str) -> bool:
        """
        Ask a server what became of a transaction whose commit it did not answer.

        Raises:
            UnreachableLedgerError: It does not say in time.
        """
        until = time.monotonic() + _SETTLE_SECONDS
        while time.monotonic() < until:
            try:
                connection = self._connection = self._connect()
                row = connection.execute(
                    "SELECT pg_xact_status(CAST(CAST(? AS TEXT) AS xid8))", (number,)
                )
                (status,) = row.fetchone()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
                if isinstance(error, asyncpg.InvalidParameterValueError):
                    # Of the future: this server was promoted without that transaction.
                    return False
                time.sleep(_PAUSE_SECONDS)
                continue
            if status != "in progress":
                return bool(status == "committed")
            # Its server process has not noticed yet that we are gone.
            time.sleep(_PAUSE_SECONDS)
        raise UnreachableLedgerError(
            f"the ledger at {self.address.shown} disconnected during a write, so it is unknown"
            " whether the write was committed",
            advice="run the same command again: nothing is written twice",
        )


def _hold_lease(connection: Connection, fence: int) -> None:
    """
    Hold the lease's row under this fence until the transaction ends.

    `FOR KEY SHARE` and not `FOR SHARE`: the fence is a part of a key, so raising it waits in both
    cases, and renewing the term of the same fence, which a long transaction must not hold up,
    waits in the other only.
    """
    held = connection.execute(
        "SELECT 1 FROM leases WHERE name = ? AND fence = ? FOR KEY SHARE", (LEASE, fence)
    ).fetchone()
    if held is None:
        newest, manager = connection.execute("SELECT fence, manager FROM meta").fetchone()
        raise FenceLost(f"fence {fence} is outdated: {manager} has fence {newest}")


def _raise_serial(connection: Connection) -> str:
    """Wait for other writers and raise the serial; returns the transaction's own number."""
    row = connection.execute(
        "UPDATE meta SET serial = serial + 1 RETURNING CAST(pg_current_xact_id() AS TEXT)"
    ).fetchone()
    return str(row[0])


# Sessions of processes that stand still in the middle of a batch, with locks that others wait for.
# `idle_in_transaction_session_timeout` ends a session that waits for its client's next statement. One
# that waits for the rest of a batch counts as active: no limit of the server's own ends it before
# version 17 (`transaction_timeout`). A process is paused there more often than one would think, because
# the server's process is woken, and takes the processor, by the first part of what was sent.

_LOOK_SECONDS = 0.1
_LOOKS = 30
"""A batch that goes on is caught waiting now and then, and not thirty times in three seconds."""

# ruff: noqa: S608 -- put together from a constant of this room.

_STALLED = (
    "SELECT a.pid FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid()"
    " AND a.datname = current_database() AND a.usename = current_user"
    " AND a.state <> 'idle' AND a.wait_event_type = 'Client' AND a.wait_event = 'ClientRead'"
    f" AND clock_timestamp() - a.query_start > interval '{IDLE_SECONDS} seconds'"
    " AND EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
    " AND l.relation IN (CAST('meta' AS regclass), CAST('leases' AS regclass)))"
)


def end_stalled(connection: Connection) -> bool:
    """
    End the sessions that keep others from this ledger, and whose process sends nothing for them.

    To be called when a lock was waited for in vain. What they had not committed is rolled back, as
    with a connection that is lost, and that is what their process finds when it goes on.

    Returns:
        Whether there was one.
    """
    stalled: set[int] | None = None
    for _ in range(_LOOKS):
        seen = {int(pid) for (pid,) in connection.execute(_STALLED)}
        stalled = seen if stalled is None else stalled & seen
        if not stalled:
            return False
        time.sleep(_LOOK_SECONDS)
    for pid in sorted(stalled or ()):
        connection.execute("SELECT pg_terminate_backend(CAST(? AS integer))", (pid,))
    return True
