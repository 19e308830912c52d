"""Connections that are lost, servers that fall over: what was answered is there, once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from contract.ledgers import CountingIds, StillClock
from fleetform.store.errors import DamagedLedgerError, LedgerBusyError, UnreachableLedgerError
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres import connection as connections
from fleetform.store.postgres import database as databases
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres
from postgres_server import PostgresServer


@pytest.fixture
def ledger(address: Address, uid: str) -> Iterator[StoredLedger]:
    ledger = open_postgres(address, uid, CountingIds(), StillClock())
    yield ledger
    ledger.close()


def backend_of(ledger: StoredLedger) -> int:
    with ledger._database.read() as connection:
        (number,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    return int(number)


def terminate(address: Address, number: int) -> None:
    """End a server process, and wait until it is gone."""
    connection = Connection(address, schema="public")
    connection.execute("SELECT pg_terminate_backend(?)", (number,))
    statement = "SELECT 1 FROM pg_stat_activity WHERE pid = ?"
    while connection.execute(statement, (number,)).fetchone() is not None:
        time.sleep(0.01)
    connection.close()


def test_a_connection_that_was_lost_is_made_anew(ledger: StoredLedger, address: Address) -> None:
    """Between two transactions nobody notices; the serial goes on counting others' commits only."""
    before = ledger.serial()
    for act in (ledger.raise_epoch, ledger.read_live, ledger.serial):
        terminate(address, backend_of(ledger))
        act()
    assert ledger.read_live().epoch == 2
    assert ledger.serial() == before


def test_a_transaction_that_is_cut_off_writes_nothing(
    ledger: StoredLedger, address: Address
) -> None:
    """In the middle the caller is told, nothing is there, and the next call gets through."""
    number = backend_of(ledger)

    def write() -> None:
        with ledger._database.write() as transaction:
            transaction.execute("UPDATE meta SET epoch = 99")
            terminate(address, number)
            transaction.execute("UPDATE meta SET epoch = 100")

    with pytest.raises(UnreachableLedgerError):
        write()
    assert ledger.read_live().epoch == 1
    assert ledger.raise_epoch() == 2


@pytest.fixture
def stands_still(address: Address, uid: str, ledger: StoredLedger) -> Iterator[Connection]:
    """A session of another process, paused behind the first part of a batch that holds a lock."""
    connection = Connection(address, schema=schema_of(uid))
    goes_on = threading.Event()

    def rows() -> Iterator[tuple[str]]:
        # More than the driver sends at once, and then nothing.
        yield from (("x" * 10_000,) for _ in range(40))
        goes_on.wait(60)

    def write() -> None:
        connection.script("BEGIN")
        statement = "UPDATE meta SET epoch = 99 WHERE CAST($1 AS text) <> ''"
        with contextlib.suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
            connection._run(connection._driver.executemany(statement, rows()))

    thread = threading.Thread(target=write)
    thread.start()
    until = time.monotonic() + 30
    waits = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND wait_event = 'ClientRead'"
    )
    while ledger._database.alone(waits).fetchone() != (1,) and time.monotonic() < until:
        time.sleep(0.05)
    yield connection
    goes_on.set()
    thread.join()
    connection.drop()


def test_who_stands_still_in_a_batch_keeps_nobody(
    ledger: StoredLedger,
    address: Address,
    uid: str,
    stands_still: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No limit of the server's ends such a session: who has waited for its lock in vain does."""
    monkeypatch.setattr(connections, "LOCK_SECONDS", 1.0)
    monkeypatch.setattr(
        databases, "_STALLED", databases._STALLED.replace("7.0 seconds", "1 seconds")
    )
    monkeypatch.setattr(databases, "_LOOKS", 5)
    other = open_postgres(address, uid, CountingIds(), StillClock())
    try:
        assert other.raise_epoch() == 2
    finally:
        other.close()
    assert ledger.read_live().epoch == 2


def test_who_goes_on_in_a_batch_is_waited_for(
    ledger: StoredLedger,
    address: Address,
    uid: str,
    stands_still: Connection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before its time it may be slow, and not gone: whoever waits is told, and it is left alone."""
    monkeypatch.setattr(connections, "LOCK_SECONDS", 0.5)
    monkeypatch.setattr(databases, "_STALLED", databases._STALLED.replace("7.0 seconds", "1 hours"))
    other = open_postgres(address, uid, CountingIds(), StillClock())
    try:
        with pytest.raises(LedgerBusyError, match="is being written by another process"):
            other.raise_epoch()
    finally:
        other.close()
    assert not stands_still.is_lost


Script = Callable[[Connection, str], str]


@pytest.fixture
def script() -> Script:
    return Connection.script


def test_a_commit_without_an_answer_that_was_carried_out(
    ledger: StoredLedger, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked what became of it: the caller gets its result, once."""

    def carried_out(self: Connection, text: str) -> str:
        if text != "COMMIT":
            return script(self, text)
        script(self, text)
        self.drop()
        raise ConnectionResetError("the answer was lost")

    monkeypatch.setattr(Connection, "script", carried_out)
    before = ledger.serial()
    assert ledger.raise_epoch() == 2
    assert ledger.read_live().epoch == 2
    assert ledger.serial() == before


def test_a_commit_that_never_arrived(
    ledger: StoredLedger, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is asked, knows nothing of it, and the caller is told that nothing was written."""

    def never_arrived(self: Connection, text: str) -> str:
        if text != "COMMIT":
            return script(self, text)
        self.drop()
        raise ConnectionResetError("it was not sent")

    with monkeypatch.context() as patch:
        patch.setattr(Connection, "script", never_arrived)
        with pytest.raises(UnreachableLedgerError, match="not sent"):
            ledger.raise_epoch()
    assert ledger.read_live().epoch == 1
    assert ledger.raise_epoch() == 2


def test_a_commit_of_which_nobody_can_tell(
    ledger: StoredLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the server stays away, the sentence says that it is not known; trying again is safe."""

    def away(*_: object) -> Connection:
        raise ConnectionRefusedError("nobody listens")

    real = Connection.script

    def lost(self: Connection, text: str) -> str:
        if text != "COMMIT":
            return real(self, text)
        real(self, text)
        self.drop()
        raise ConnectionResetError("the answer was lost")

    with monkeypatch.context() as patch:
        patch.setattr(databases, "_SETTLE_SECONDS", 0.3)
        patch.setattr(Connection, "script", lost)
        patch.setattr(type(ledger._database), "_connect", away)
        with pytest.raises(UnreachableLedgerError, match="unknown whether") as caught:
            ledger.begin_recovery("x")
        assert "same command again" in caught.value.advice
    assert ledger.read_live().notes == ("x",)


def test_a_server_that_falls_over_and_comes_back(uid: str, postgres: PostgresServer) -> None:
    """Through five immediate shutdowns every epoch that was answered is there, and none twice."""
    server = PostgresServer()
    try:
        ledger = open_postgres(Address.parse(server.url), uid, CountingIds(), StillClock())
        answered: list[int] = []
        failures = 0
        stop = threading.Event()

        def write() -> None:
            nonlocal failures
            while not stop.is_set():
                try:
                    answered.append(ledger.raise_epoch())
                except UnreachableLedgerError:
                    failures += 1
                    time.sleep(0.02)

        writing = threading.Thread(target=write)
        writing.start()
        for _ in range(5):
            seen = len(answered)
            while len(answered) < seen + 20:
                assert writing.is_alive()
                time.sleep(0.01)
            server.stop("immediate")
            server.start()
        stop.set()
        writing.join(60)
        last = ledger.read_live().epoch
        assert len(answered) == len(set(answered))
        assert answered == sorted(answered)
        # What was not answered may have been written, at most one a failure.
        assert len(answered) <= last - 1 <= len(answered) + failures
        assert answered[-1] <= last
        ledger.close()
    finally:
        server.close()
    assert postgres is not server


def test_a_schema_that_was_dropped(ledger: StoredLedger, address: Address, uid: str) -> None:
    """A ledger that was dropped under a process is no ledger any more, and nobody makes one up."""
    connection = Connection(address, schema="public")
    connection.script(f"DROP SCHEMA {schema_of(uid)} CASCADE")
    connection.close()
    with pytest.raises(DamagedLedgerError, match="has lost a table"):
        ledger.raise_epoch()
