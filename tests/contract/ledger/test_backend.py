"""What every place of ledgers does: for one environment after another, and without any."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contract.ledgers import CountingIds, StillClock
from fleetform.store.backend import LedgerBackend
from fleetform.store.postgres.address import Address
from fleetform.store.postgres.backend import PostgresBackend, close_looks
from fleetform.store.sqlite import LedgerFiles, SqliteBackend
from postgres_server import PostgresServer


@pytest.fixture(autouse=True)
def closing_looks() -> Iterator[None]:
    yield
    close_looks()


@pytest.fixture(params=["sqlite", "postgresql"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> LedgerBackend:
    if request.param == "sqlite":
        return SqliteBackend(tmp_path / "environments")
    server: PostgresServer = request.getfixturevalue("postgres")
    return PostgresBackend(Address.parse(server.url))


@pytest.fixture
def uid() -> str:
    """The uid of an environment that no other test has."""
    return os.urandom(16).hex()


@pytest.fixture
def create(backend: LedgerBackend, uid: str) -> Callable[[], None]:
    """Create the ledger of `uid`."""
    return lambda: backend.open_writer(uid, CountingIds(), StillClock()).close()


def test_a_ledger_is_created_by_the_first_writer(
    backend: LedgerBackend, uid: str, create: Callable[[], None]
) -> None:
    """Before, there is nothing to read; afterwards there is, and the environment is listed."""
    assert backend.open_reader(uid) is None
    assert uid not in backend.environments()
    create()
    reader = backend.open_reader(uid)
    assert reader is not None
    with closing(reader):
        assert reader.read_standing().environment_uid == uid
    assert uid in backend.environments()
    assert list(backend.environments()) == sorted(backend.environments())


def test_one_transaction_on_what_exists(
    backend: LedgerBackend, uid: str, create: Callable[[], None]
) -> None:
    """A plan is kept without a ledger being opened as its writer does."""
    create()
    with backend.open_to_keep(uid) as transaction:
        transaction.execute("INSERT INTO plans (digest, body) VALUES (?, ?)", ("d", b"plan"))
    reader = backend.open_reader(uid)
    assert reader is not None
    with closing(reader):
        assert reader.read_plan("d") == b"plan"


def test_one_process_has_the_lease(
    backend: LedgerBackend, uid: str, create: Callable[[], None]
) -> None:
    """Others are told who has it, until it is released."""
    create()
    assert backend.holder(uid) is None
    ids, clock = CountingIds(), StillClock()
    lease = backend.try_lease(uid, ids, clock, who="anna", command="apply")
    assert lease is not None
    with lease:
        assert backend.try_lease(uid, ids, clock, who="bert", command="serve") is None
        holder = backend.holder(uid)
        assert holder is not None
        assert (holder.pid, holder.who, holder.command) == (os.getpid(), "anna", "apply")
        assert (holder.left_ms is not None) is backend.has_lease_in_ledger
    assert backend.holder(uid) is None


def test_a_request_is_seen_while_it_lasts(
    backend: LedgerBackend, uid: str, create: Callable[[], None]
) -> None:
    """The holder of a lease sees that another process asks for it."""
    create()
    assert not backend.is_lease_requested(uid)
    with backend.request_lease(uid, StillClock(), who="anna", term_ms=60_000):
        assert backend.is_lease_requested(uid)
    assert not backend.is_lease_requested(uid)


def test_a_current_ledger_is_not_upgraded(
    backend: LedgerBackend, uid: str, create: Callable[[], None]
) -> None:
    """Nothing is kept for an upgrade that there is none of."""
    create()

    def keep(*_: object) -> Path:
        pytest.fail("there is nothing to keep")

    assert backend.upgrade(uid, keep) is None


def test_a_ledger_that_cannot_be_read_is_put_aside(tmp_path: Path) -> None:
    """It moves with its log, and a new ledger is created in its place."""
    backend = SqliteBackend(tmp_path / "environments")
    files = LedgerFiles(tmp_path / "environments" / "e")
    files.folder.mkdir(parents=True)
    files.ledger.write_bytes(b"no ledger")
    files.ledger.with_suffix(".db-wal").write_bytes(b"its log")
    assert backend.can_put_aside
    backend.put_aside("e", tmp_path / "aside")
    assert sorted(one.name for one in (tmp_path / "aside").iterdir()) == [
        "ledger.db",
        "ledger.db-wal",
    ]
    assert backend.open_reader("e") is None


def test_many_environments_take_few_connections(postgres: PostgresServer) -> None:
    """Whoever lists the locks of a database does not take a connection for each environment."""
    backend = PostgresBackend(Address.parse(postgres.url))
    uids = [os.urandom(16).hex() for _ in range(6)]
    for uid in uids:
        backend.open_writer(uid, CountingIds(), StillClock()).close()
    assert [backend.holder(uid) for uid in uids] == [None] * 6
    assert [backend.holder(uid) for uid in uids] == [None] * 6
