"""What is said when a PostgreSQL ledger cannot be had: one sentence, a cure, and no password."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.ledgers import CountingIds, StillClock
from fleetform.store import schema as schemas
from fleetform.store.errors import (
    AddressError,
    DamagedLedgerError,
    ForeignLedgerError,
    LedgerError,
    LoginError,
    MissingLedgerError,
    NewerLedgerError,
    OlderLedgerError,
    ReadOnlyLedgerError,
    UnreachableLedgerError,
)
from fleetform.store.ledger import StoredLedger
from fleetform.store.postgres import opening as postgres_opening
from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.lease import LeaseLook
from fleetform.store.postgres.opening import (
    environments_in,
    open_postgres,
    open_postgres_snapshot,
    open_postgres_to_keep,
    upgrade_postgres,
)
from fleetform.store.schema_generator import statements
from fleetform.store.soundness import Upgraded
from postgres_server import PASSWORD, PostgresServer
from released import OLDER, UID, write_schema

Open = Callable[..., StoredLedger]


def open_ledger(address: Address, uid: str, first: int = 1) -> StoredLedger:
    return open_postgres(address, uid, CountingIds(first), StillClock())


def script(address: Address, uid: str, text: str) -> None:
    connection = Connection(address, schema=schema_of(uid))
    connection.script(text)
    connection.close()


def refused(kind: type[LedgerError], address: Address, uid: str) -> str:
    """Both ways in are refused with this kind; returns what is said, without any secret."""
    said = []
    for attempt in (open_ledger, open_postgres_snapshot):
        with pytest.raises(kind) as caught:
            attempt(address, uid)
        said.append(f"{caught.value}; {caught.value.advice}")
        assert caught.value.advice
        assert PASSWORD not in said[-1]
        assert PASSWORD not in repr(caught.value) + repr(address)
    return said[0]


def test_a_new_ledger(address: Address, uid: str) -> None:
    """The first to open it makes it, with an id of its own; a reader makes nothing."""
    with pytest.raises(MissingLedgerError):
        open_postgres_snapshot(address, uid)
    ledger = open_ledger(address, uid)
    live = ledger.read_live()
    assert (live.environment_uid, live.epoch, live.status.value) == (uid, 1, "empty")
    ledger.close()
    again = open_ledger(address, uid, first=50)
    assert again.read_live().ledger_id == live.ledger_id
    again.close()


def test_two_first_applies_make_one_ledger(address: Address, uid: str) -> None:
    """Eight that open it at the same moment find the ledger of one of them."""
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(lambda n: open_ledger(address, uid, n * 100), range(1, 9)))
    assert len({one.read_live().ledger_id for one in opened}) == 1
    for one in opened:
        one.close()


def test_environments_are_apart(address: Address, uid: str) -> None:
    """Two environments in one database see nothing of each other."""
    other_uid = os.urandom(16).hex()
    one, other = open_ledger(address, uid), open_ledger(address, other_uid, 500)
    one.begin_recovery("of the first")
    assert other.read_live().status.value == "empty"
    assert one.read_live().ledger_id != other.read_live().ledger_id
    assert {uid, other_uid} <= set(environments_in(address))
    one.close()
    other.close()


def test_a_damaged_ledger_hides_no_other(address: Address, uid: str) -> None:
    """Both are listed, and the healthy one as always."""
    other_uid = os.urandom(16).hex()
    one, other = open_ledger(address, uid), open_ledger(address, other_uid, 500)
    connection = Connection(address, schema="public")
    connection.script(f"DROP TABLE {schema_of(other_uid)}.meta CASCADE")
    connection.close()
    assert {uid, other_uid} <= set(environments_in(address))
    one.close()
    other.close()


def test_no_server(uid: str) -> None:
    """Nobody listens at the address: said with the address, and what to look at."""
    address = Address.parse(f"postgresql://fleetform:{PASSWORD}@127.0.0.1:1/ledger")
    said = refused(UnreachableLedgerError, address, uid)
    where = "postgresql://fleetform@127.0.0.1:1/ledger"
    assert f"{where} does not answer (connection refused); see whether" in said


def test_a_name_of_several_addresses(uid: str) -> None:
    """What each of them said is told once, without numbers."""
    address = Address.parse(f"postgresql://fleetform:{PASSWORD}@localhost:1/ledger")
    assert "does not answer (connection refused);" in refused(UnreachableLedgerError, address, uid)


def test_wrong_password(postgres: PostgresServer, uid: str) -> None:
    """A password that is not accepted is called that, and is not shown."""
    wrong = "not-" + PASSWORD
    said = refused(LoginError, Address.parse(postgres.url_of("postgres", password=wrong)), uid)
    assert "refuses this user" in said


def test_no_such_database(postgres: PostgresServer, uid: str) -> None:
    """A database that is not there is to be made by its administrator."""
    said = refused(AddressError, Address.parse(postgres.url_of("nobody")), uid)
    assert "createdb" in said


def test_unknown_option(postgres: PostgresServer, uid: str) -> None:
    """An address with an option that makes no sense is refused without being quoted."""
    refused(AddressError, Address.parse(f"{postgres.url}&sslmode=perhaps"), uid)


def test_another_environments_ledger(address: Address, uid: str) -> None:
    """A schema that was renamed or restored over another's is known by what is in it."""
    open_ledger(address, uid).close()
    script(address, uid, f"UPDATE meta SET environment_uid = '{'f' * 32}'")
    assert "belongs to environment ffff" in refused(ForeignLedgerError, address, uid)


def test_a_newer_ledger(address: Address, uid: str) -> None:
    """A ledger of a later release is left alone."""
    open_ledger(address, uid).close()
    script(address, uid, "UPDATE alembic_version SET version_num = '9999'")
    assert "upgrade fleetform" in refused(NewerLedgerError, address, uid)


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE {schema}.something (number BIGINT)",
        "DELETE FROM {schema}.alembic_version",
        "DELETE FROM {schema}.meta",
        "DROP TABLE {schema}.meta",
    ],
)
def test_what_is_no_ledger(text: str, address: Address, uid: str) -> None:
    """A schema with other tables, or with some of ours missing, is not made over."""
    schema = schema_of(uid)
    if text.startswith("CREATE"):
        script(address, uid, f"CREATE SCHEMA {schema}")
    else:
        open_ledger(address, uid).close()
    script(address, uid, text.format(schema=schema))
    refused(DamagedLedgerError, address, uid)


def test_a_user_who_may_not_write(postgres: PostgresServer, uid: str) -> None:
    """Without the right to make a schema, the cure names the grant."""
    administrator = Address.parse(postgres.url)
    name = f"reader_{uid[:8]}"
    script(administrator, uid, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    url = postgres.url.replace(f"//{postgres.user}:", f"//{name}:")
    with pytest.raises(ReadOnlyLedgerError) as caught:
        open_ledger(Address.parse(url), uid)
    assert "GRANT CREATE ON DATABASE" in caught.value.advice
    # With a schema that was made for this user nothing else is needed.
    script(administrator, uid, f"CREATE SCHEMA {schema_of(uid)} AUTHORIZATION {name}")
    ledger = open_ledger(Address.parse(url), uid)
    assert ledger.read_live().epoch == 1
    ledger.close()


def test_a_user_who_may_not_read(postgres: PostgresServer, uid: str) -> None:
    """A ledger that is another's is called that, and not lost; nor is there said to be none."""
    administrator = Address.parse(postgres.url)
    open_ledger(administrator, uid).close()
    name, schema = f"reader_{uid[:8]}", schema_of(uid)
    script(administrator, uid, f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    reader = Address.parse(postgres.url.replace(f"//{postgres.user}:", f"//{name}:"))
    for right in ("SELECT 1", f"GRANT USAGE ON SCHEMA {schema} TO {name}"):
        script(administrator, uid, right)
        said = refused(LoginError, reader, uid)
        assert f"there is a ledger in schema {schema}, and user {name} may not read it" in said
        assert f"GRANT {postgres.user} TO {name}" in said
        with pytest.raises(LoginError, match=f"user {name} may not read it"):
            LeaseLook(reader, uid)
        with pytest.raises(LoginError, match="may read none of them"):
            environments_in(reader)
    script(administrator, uid, f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {name}")
    assert environments_in(reader) == (uid,)
    with contextlib.closing(open_postgres_snapshot(reader, uid)) as snapshot:
        assert snapshot.read_live().epoch == 1
    ledger = open_ledger(reader, uid)
    with pytest.raises(ReadOnlyLedgerError, match="permit this user to do that") as caught:
        ledger.take_fence(who="somebody", now_ms=1)
    assert "name the user who owns it" in caught.value.advice
    ledger.close()


def test_a_database_that_can_only_be_read(postgres: PostgresServer, uid: str) -> None:
    """A standby is told from a server that is broken."""
    address = Address.parse(postgres.url)
    ledger = open_ledger(address, uid)

    def write() -> None:
        with ledger._database.write() as transaction:
            transaction.execute("SET TRANSACTION READ ONLY")
            transaction.execute("UPDATE meta SET note = 'x'")

    with pytest.raises(ReadOnlyLedgerError, match="standby"):
        write()
    ledger.close()


def test_a_database_in_another_encoding(postgres: PostgresServer, uid: str) -> None:
    """A database that cannot hold every name is refused before anything is in it."""
    administrator = Address.parse(postgres.url)
    name = f"latin_{uid[:8]}"
    script(administrator, uid, f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(ReadOnlyLedgerError, match="encoded in LATIN1"):
        open_ledger(Address.parse(postgres.url_of(name)), uid)
    script(administrator, uid, f"DROP DATABASE {name}")


def test_text_with_a_nul(address: Address, uid: str) -> None:
    """What a host says may hold a NUL, which PostgreSQL's text does not: it is replaced."""
    ledger = open_ledger(address, uid)
    ledger.begin_recovery("before\0after")
    assert ledger.read_live().notes == ("before\N{REPLACEMENT CHARACTER}after",)
    ledger.close()


# -- versions -----------------------------------------------------------------------------------


@pytest.fixture
def older(address: Address) -> Iterator[str]:
    """Leave a ledger of the first release; its uid."""
    write_schema(address.url, OLDER[0])
    yield UID
    script(address, UID, f"DROP SCHEMA {schema_of(UID)} CASCADE")


def upgrade(address: Address, uid: str) -> Upgraded | None:
    return upgrade_postgres(address, uid, lambda _source, _version: Path("backup"))


def test_an_older_ledger_is_upgraded(address: Address, older: str) -> None:
    """Who asks for it upgrades it, once, and nothing in it is lost; who opens it changes nothing."""
    for attempt in (open_ledger, open_postgres_snapshot):
        with pytest.raises(OlderLedgerError, match="has version 0001"):
            attempt(address, older)
    with ThreadPoolExecutor(4) as threads:
        done = list(threads.map(lambda _: upgrade(address, older), range(4)))
    assert [one for one in done if one is not None] == [
        Upgraded(OLDER[0], schemas.VERSION, Path("backup"))
    ]
    with contextlib.closing(open_ledger(address, older)) as ledger:
        assert len(ledger.read_live().resources) > 1


def test_an_upgrade_is_whole_or_nothing(
    address: Address, older: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade that fails half way leaves the older ledger as it was."""
    with monkeypatch.context() as patch:
        patch.setattr(
            "fleetform.store.schema_generator.statements",
            lambda *some, **more: [*statements(*some, **more), "SELECT nothing FROM nowhere"],
        )
        with pytest.raises(Exception, match="nowhere"):
            upgrade(address, older)
    with pytest.raises(OlderLedgerError):
        open_postgres_snapshot(address, older)
    assert upgrade(address, older) is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ALTER TABLE resources DROP COLUMN observed", "lacks resources.observed: an earlier"),
        ("UPDATE alembic_version SET version_num = '0001b'", "0001b, which no release has written"),
    ],
)
def test_a_ledger_of_another_shape(text: str, said: str, address: Address, uid: str) -> None:
    """An older form of this version, and one of no release."""
    open_ledger(address, uid).close()
    script(address, uid, text)
    with pytest.raises(DamagedLedgerError, match=said) as caught:
        open_ledger(address, uid)
    assert "state rebuild" in caught.value.advice
    # What it says comes first makes room for a new one, and what was there is still there.
    assert "`ALTER SCHEMA … RENAME TO …`" in caught.value.advice
    script(address, uid, f"ALTER SCHEMA {schema_of(uid)} RENAME TO aside_{uid}")
    open_ledger(address, uid).close()
    script(address, uid, f"DROP SCHEMA aside_{uid} CASCADE")


def test_a_half_migrated_ledger(address: Address, uid: str) -> None:
    """It says the version before, and has tables of this one: an upgrade of it is refused."""
    open_ledger(address, uid).close()
    script(address, uid, "UPDATE alembic_version SET version_num = '0001'")
    with pytest.raises(DamagedLedgerError, match="has other tables than this release") as caught:
        upgrade(address, uid)
    assert "`ALTER SCHEMA … RENAME TO …`" in caught.value.advice


def test_who_reads_a_ledger_of_another_shape(address: Address, uid: str) -> None:
    """They are told at the first column that is not there, with its name."""
    open_ledger(address, uid).close()
    script(address, uid, "ALTER TABLE overrides RENAME COLUMN who TO maker")
    with (
        contextlib.closing(open_postgres_snapshot(address, uid)) as snapshot,
        pytest.raises(DamagedLedgerError, match=r"other tables .*who"),
    ):
        snapshot.read_overrides()


COLUMNS = (
    "SELECT table_name, column_name, data_type, is_nullable, column_default, collation_name"
    " FROM information_schema.columns WHERE table_schema = ? ORDER BY table_name, column_name"
)
INDEXES = "SELECT indexdef FROM pg_catalog.pg_indexes WHERE schemaname = ? ORDER BY indexname"
CONSTRAINTS = (
    "SELECT c.conrelid::regclass::text, c.contype::text, pg_get_constraintdef(c.oid)"
    " FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace"
    " WHERE n.nspname = ? ORDER BY 1, 2, 3"
)


def described(address: Address, uid: str) -> list[list[str]]:
    schema = schema_of(uid)
    connection = Connection(address, schema=schema)
    found = [
        [str(row).replace(schema, "S") for row in connection.execute(statement, (schema,))]
        for statement in (COLUMNS, INDEXES, CONSTRAINTS)
    ]
    connection.close()
    return found


def test_an_upgrade_makes_what_a_new_ledger_has(address: Address, uid: str, older: str) -> None:
    """`schema.sql`, which creates a new ledger, and the upgrade of an older one come to the same."""
    open_ledger(address, uid).close()
    assert upgrade(address, older) is not None
    frozen, migrated = described(address, uid), described(address, older)
    assert frozen == migrated
    assert len(frozen[0]) > 150
    assert postgres_opening.VERSION == schemas.VERSION


def test_keeping_a_plan_makes_nothing(address: Address, uid: str) -> None:
    """Who only writes a plan down neither makes a ledger nor upgrades one."""
    with pytest.raises(MissingLedgerError), open_postgres_to_keep(address, uid):
        pass
    open_ledger(address, uid).close()
    with open_postgres_to_keep(address, uid) as transaction:
        transaction.execute("UPDATE meta SET note = 'kept'")
    reader = open_postgres_snapshot(address, uid)
    assert reader.read_live().notes == ("kept",)
    reader.close()
