"""What is kept of stacks, in files and in PostgreSQL: what a call means is in `providers.contract.stacks`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from contract.ledgers import ENVIRONMENT, CountingIds, StillClock
from fleetform.model.refusals import FenceLost
from fleetform.providers.contract.stacks import OF_ENVIRONMENT, StackRecords
from fleetform.providers.pulumi.engine.file_records import FileRecords
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.opening import open_postgres
from fleetform.store.postgres.stacks import PostgresStacks
from postgres_server import PASSWORD, PostgresServer


class Files:
    """A folder of the test's own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def controller(self) -> StackRecords:
        return FileRecords(self._folder)

    def reader(self) -> StackRecords:
        return FileRecords(self._folder)


class Tables:
    """A ledger in a schema of the test's own."""

    def __init__(self, server: PostgresServer, closing: contextlib.ExitStack) -> None:
        self._address = Address.parse(server.url)
        self._closing = closing
        connection = Connection(self._address, schema=schema_of(ENVIRONMENT))
        connection.script(f"DROP SCHEMA IF EXISTS {schema_of(ENVIRONMENT)} CASCADE")
        connection.close()

    def ledger(self) -> StoredLedger:
        ledger = open_postgres(self._address, ENVIRONMENT, CountingIds(), StillClock())
        return self._closing.enter_context(contextlib.closing(ledger))

    def controller(self) -> PostgresStacks:
        records = self.reader()
        records.act_under(self.ledger().take_fence(who="somebody", now_ms=1))
        return records

    def connection(self) -> Connection:
        """Connect as the engine does."""
        connection = Connection(self._address, schema=schema_of(ENVIRONMENT))
        return self._closing.enter_context(contextlib.closing(connection))

    def reader(self) -> PostgresStacks:
        records = PostgresStacks(self._address, ENVIRONMENT)
        return self._closing.enter_context(contextlib.closing(records))


@pytest.fixture(params=["files", "tables"])
def site(request, tmp_path):
    if request.param == "files":
        yield Files(tmp_path)
        return
    with contextlib.ExitStack() as closing:
        yield Tables(request.getfixturevalue("postgres"), closing)


@pytest.fixture
def tables(postgres):
    with contextlib.ExitStack() as closing:
        yield Tables(postgres, closing)


def test_what_is_written_is_read_by_others(site):
    """Each kind of each stack is a record of its own; the last text counts."""
    records = site.controller()
    records.write("b", "batch", "1")
    records.write("b", "batch", "2 ✓")
    records.write("a", "batch", "3")
    records.write("b", "shared", "4")
    records.write(OF_ENVIRONMENT, "keys", "5")
    other = site.reader()
    assert other.read("b", "batch") == "2 ✓"
    assert other.read(OF_ENVIRONMENT, "keys") == "5"
    assert list(other.read_all("batch").items()) == [("a", "3"), ("b", "2 ✓")]


def test_what_was_never_written_is_not_there(site):
    """Neither before the first change of a cloud nor after it."""
    assert site.reader().read("a", "batch") is None
    assert site.reader().read_all("batch") == {}
    site.controller().write("a", "batch", "1")
    assert site.reader().read("a", "shared") is None
    assert site.reader().read("b", "batch") is None


def test_a_stack_is_removed_with_all_its_records(site):
    """Those of other stacks and of the environment stay; a second time does nothing."""
    records = site.controller()
    for stack, kind in (("a", "batch"), ("a", "shared"), ("b", "batch"), (OF_ENVIRONMENT, "keys")):
        records.write(stack, kind, "1")
    for _ in range(2):
        records.remove("a")
        assert records.read("a", "batch") is None
        assert records.read("a", "shared") is None
    assert dict(records.read_all("batch")) == {"b": "1"}
    assert records.read(OF_ENVIRONMENT, "keys") == "1"


def test_a_controller_that_was_replaced_writes_nothing(tables):
    """Its records stay as its successor has them."""
    former = tables.controller()
    former.write("a", "batch", "former")
    successor = tables.controller()
    successor.write("a", "batch", "successor")
    changes: tuple[Callable[[], None], ...] = (
        lambda: former.write("a", "batch", "late"),
        lambda: former.remove("a"),
    )
    for change in changes:
        with pytest.raises(FenceLost):
            change()
    assert former.read("a", "batch") == "successor"


def test_only_a_controller_changes_stacks(tables):
    """A command without the manager lease reads records, and gets no address for a change."""
    tables.controller().write("a", "batch", "1")
    reader = tables.reader()
    assert reader.read("a", "batch") == "1"
    with pytest.raises(FenceLost):
        reader.write("a", "batch", "2")
    with pytest.raises(FenceLost):
        reader.backend()


def test_the_address_for_the_engine_has_no_password(tables):
    """It is a variable of the engine's process, and no text of it is shown."""
    backend = tables.controller().backend()
    assert PASSWORD not in backend.url
    assert backend.variables == {"PGPASSWORD": PASSWORD}
    assert PASSWORD not in repr(backend)


def test_the_state_is_fenced_before_the_engine_writes_it(tables):
    """Also where the first change asks for the address before it has written a record."""
    former = tables.controller()
    former.backend()
    connection = tables.connection()
    connection.script("SET fleetform.fence = '1'")
    write = "INSERT INTO pulumi_state (key, data) VALUES (?, '{}')"
    connection.execute(write, ("a",))
    tables.controller()
    for fence in ("1", "", "2x"):
        connection.script(f"SET fleetform.fence = '{fence}'")
        for statement in (write, "DELETE FROM pulumi_state WHERE key <> ?"):
            with pytest.raises(asyncpg.RaiseError, match="is outdated"):
                connection.execute(statement, ("b",))
    connection.script("SET fleetform.fence = '2'")
    connection.execute(write, ("b",))
