"""A new ledger, an upgraded one and the recorded ones of earlier releases have the tables that `tables` declares."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetform.store import schema
from fleetform.store.schema import _DIGEST, _digest, columns_of, lacking, upgrade_schema
from fleetform.store.schema_generator import POSTGRES_SCHEMA, SCHEMA, schema_for
from fleetform.store.tables import FIRST, metadata
from released import LEDGERS, UID, rows_of


def recorded(version: str) -> sqlite3.Connection:
    """Create the tables that a version had, as they were recorded when it was the newest."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.executescript((LEDGERS / "tables" / f"{version}.sql").read_text(encoding="utf-8"))
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute("INSERT INTO alembic_version VALUES (?)", (version,))
    return connection


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    connection = recorded(FIRST)
    upgrade_schema(connection)
    yield connection
    connection.close()


def described(connection: sqlite3.Connection) -> dict[str, set[tuple[object, ...]]]:
    """Columns, keys, indexes and what else the tables promise; the order of columns is no promise."""
    queries = {
        "columns": 'SELECT t.name, c.name, c.type, c."notnull", c.dflt_value, c.pk'
        " FROM pragma_table_list t, pragma_table_info(t.name) c",
        "tables": "SELECT name, wr, strict FROM pragma_table_list",
        # Those that a constraint makes have names with a number in it.
        "indexes": "SELECT t.name, CASE i.origin WHEN 'c' THEN i.name END, i.\"unique\", i.origin,"
        " i.partial, (SELECT group_concat(x.name) FROM pragma_index_info(i.name) x)"
        " FROM pragma_table_list t, pragma_index_list(t.name) i",
        "references": 'SELECT t.name, f.seq, f."table", f."from", f."to", f.on_delete'
        " FROM pragma_table_list t, pragma_foreign_key_list(t.name) f",
    }
    found = {what: set(connection.execute(query)) for what, query in queries.items()}
    for name, sql in connection.execute("SELECT name, sql FROM sqlite_master WHERE sql <> ''"):
        for promise in re.findall(r"AUTOINCREMENT|CHECK \(.*?\)|\bWHERE .*|CONSTRAINT \w+", sql):
            found.setdefault("promises", set()).add((name, " ".join(promise.split())))
    return found


@pytest.mark.parametrize("version", sorted(schema.VERSIONS))
def test_an_earlier_version_has_the_tables_that_were_recorded(version: str) -> None:
    """What `tables` says of a version is what ledgers of that version have, also after the next change."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_schema(made, version)
    before = recorded(version)
    assert described(made) == described(before)
    assert all(described(made).values())
    assert schema.read_version(made) == version
    made.close()
    before.close()


@pytest.mark.parametrize("version", sorted(schema.VERSIONS - {schema.VERSION}))
def test_an_upgrade_makes_what_a_new_ledger_has(version: str) -> None:
    """`schema.sql`, which creates a new ledger, and the upgrade of an older one come to the same."""
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_schema(fresh)
    upgraded = recorded(version)
    upgrade_schema(upgraded)
    assert described(fresh) == described(upgraded)
    assert schema.read_version(fresh) == schema.read_version(upgraded) == schema.VERSION
    fresh.close()
    upgraded.close()


@pytest.mark.parametrize("path", [SCHEMA, POSTGRES_SCHEMA], ids=["sqlite", "postgresql"])
def test_the_schema_is_written_from_the_tables(path: Path) -> None:
    """Both texts are current, and have one column a line, so that a change reads as one."""
    text = path.read_text(encoding="utf-8")
    assert text == schema_for(path)
    assert [line for line in text.splitlines() if COLUMN.search(line)] == []


COLUMN = re.compile(r", \w+ (TEXT|INTEGER|BIGINT|BYTEA|BLOB)\b")
"""A column that begins within a line."""


def test_versions_are_those_that_the_tables_name() -> None:
    """`VERSIONS` has each version that added something, and `VERSION` is the newest."""
    named = {FIRST}
    for table in metadata.sorted_tables:
        parts = (table, *table.columns, *table.indexes)
        named.update(str(one.info.get("since", FIRST)) for one in parts)
    assert named == schema.VERSIONS
    assert max(named) == schema.VERSION


def test_attempts_of_an_earlier_release_have_no_master_port() -> None:
    """Their jobs were started without one, and messages that are sent again must not differ."""
    connection = recorded(FIRST)
    connection.executescript(rows_of(FIRST))
    upgrade_schema(connection)
    ports = connection.execute("SELECT DISTINCT master_port FROM attempts").fetchall()
    assert ports == [(None,)]
    connection.close()


def test_upgrade_is_whole_or_nothing() -> None:
    """An upgrade that fails half way leaves the tables and rows of before."""
    connection = recorded(FIRST)
    connection.executescript(rows_of(FIRST))
    connection.execute("CREATE TABLE snapshots (number)")
    before = list(connection.iterdump())
    with pytest.raises(sqlite3.OperationalError, match="snapshots already exists"):
        upgrade_schema(connection)
    assert list(connection.iterdump()) == before
    assert connection.execute("SELECT environment_uid FROM meta").fetchone() == (UID,)
    connection.close()


@pytest.mark.parametrize("module", ["reads", "opening"])
def test_heavy_libraries_are_not_imported(module: str) -> None:
    """Neither reading nor writing imports SQLAlchemy or pydantic."""
    code = (
        f"import sys, fleetform.store.{module};"
        "print(sorted({'sqlalchemy', 'pydantic', 'asyncio', 'ctypes'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_columns_are_known(migrated: sqlite3.Connection) -> None:
    """What a ledger is compared with when it is opened is what an upgrade makes."""
    columns = columns_of(migrated)
    assert lacking(columns) == ""
    assert _digest(columns) == _DIGEST
    some = [column for column in columns if column[0] != "meta" and column != ("runs", "uid")]
    assert lacking(some) == "meta, runs.uid"
    assert lacking([]).endswith(f" and {len({table for table, _ in columns}) - 5} more")
