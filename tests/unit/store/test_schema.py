"""Tables, migrations and `schema.sql` say the same, and Alembic stays out of the way."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

from fleetform.store import schema
from fleetform.store.migrations.upgrade import upgrade
from fleetform.store.schema import _DIGEST, _digest, columns_of, lacking
from fleetform.store.schema_generator import POSTGRES_SCHEMA, SCHEMA, schema_for
from fleetform.store.tables import metadata


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    upgrade(connection)
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


def test_models_equal_migrations(migrated: sqlite3.Connection) -> None:
    """Alembic finds nothing to do between the migrated database and the tables."""
    engine = create_engine("sqlite://", creator=lambda: migrated, poolclass=StaticPool)
    with engine.connect() as bound:
        context = MigrationContext.configure(bound, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_migrations_make_what_a_new_ledger_has(migrated: sqlite3.Connection) -> None:
    """`schema.sql`, which makes a new ledger, and the migrations of an older one come to the same."""
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_schema(fresh)
    assert described(fresh) == described(migrated)
    assert all(described(fresh).values())
    assert schema.read_version(fresh) == schema.VERSION
    fresh.close()


@pytest.mark.parametrize("path", [SCHEMA, POSTGRES_SCHEMA], ids=["sqlite", "postgresql"])
def test_the_schema_is_written_from_the_tables(path: Path) -> None:
    """Both texts are current, and have one column a line, so that a change reads as one."""
    text = path.read_text(encoding="utf-8")
    assert text == schema_for(path)
    assert [line for line in text.splitlines() if COLUMN.search(line)] == []


COLUMN = re.compile(r", \w+ (TEXT|INTEGER|BIGINT|BYTEA|BLOB)\b")
"""A column that begins within a line."""


def test_version_is_the_newest_migration() -> None:
    """`VERSION` names the last module of the folder, and `VERSIONS` each of them."""
    folder = Path(schema.__file__).parent / "migrations" / "versions"
    versions = {path.name[1:5] for path in folder.glob("v[0-9]*.py")}
    assert max(versions) == schema.VERSION
    assert versions == schema.VERSIONS


def test_upgrade_is_whole_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration that fails half way leaves no table behind."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE usage (number)")
    with pytest.raises(Exception, match="usage already exists"):
        upgrade(connection)
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    assert tables == [("usage",)]
    connection.close()


@pytest.mark.parametrize("module", ["snapshot", "opening"])
def test_heavy_libraries_are_not_imported(module: str) -> None:
    """Neither reading nor writing imports SQLAlchemy, Alembic or pydantic."""
    code = (
        f"import sys, fleetform.store.{module};"
        "print(sorted({'sqlalchemy', 'alembic', 'pydantic', 'asyncio', 'ctypes'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_columns_are_known(migrated: sqlite3.Connection) -> None:
    """What a ledger is compared with when it is opened is what the migrations make."""
    columns = columns_of(migrated)
    assert lacking(columns) == ""
    assert _digest(columns) == _DIGEST
    some = [column for column in columns if column[0] != "meta" and column != ("runs", "uid")]
    assert lacking(some) == "meta, runs.uid"
    assert lacking([]).endswith(f" and {len({table for table, _ in columns}) - 5} more")
