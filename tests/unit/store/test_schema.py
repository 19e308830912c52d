"""Tables, migrations and `schema.sql` say the same, and Alembic stays out of the way."""

from __future__ import annotations

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
from fleetform.store.migrations.upgrade import SCHEMA, freeze, upgrade
from fleetform.store.schema import _DIGEST, _digest, columns_of, lacking
from fleetform.store.tables import metadata


@pytest.fixture
def migrated() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    upgrade(connection)
    yield connection
    connection.close()


def described(connection: sqlite3.Connection) -> dict[str, str]:
    """Every table and index as SQLite keeps it, without spaces."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: "".join(sql.split()) for name, sql in rows}


def test_models_equal_migrations(migrated: sqlite3.Connection) -> None:
    """Alembic finds nothing to do between the migrated database and the tables."""
    engine = create_engine("sqlite://", creator=lambda: migrated, poolclass=StaticPool)
    with engine.connect() as bound:
        context = MigrationContext.configure(bound, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_partial_indexes_equal_migrations(migrated: sqlite3.Connection) -> None:
    """Conditions of indexes, which Alembic does not compare, are the same too."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    metadata.create_all(engine)
    with engine.connect() as bound:
        made = {
            name: "".join(sql.split())
            for name, sql in bound.exec_driver_sql(
                "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
            )
        }
    engine.dispose()
    there = described(migrated)
    assert made == {name: there[name] for name in made}


def test_frozen_schema_is_current(migrated: sqlite3.Connection) -> None:
    """A new ledger's schema is what the migrations make of nothing."""
    assert SCHEMA.read_text(encoding="utf-8") == freeze()
    fresh = sqlite3.connect(":memory:", isolation_level=None)
    schema.create_schema(fresh)
    assert described(fresh) == described(migrated)
    assert schema.read_version(fresh) == schema.VERSION
    fresh.close()


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
