"""
Runs migrations on a connection; the only place that imports Alembic's machinery.

`freeze` writes `schema.sql`, what all migrations make of nothing, so that a new ledger costs
milliseconds: `python -m fleetform.store.migrations.upgrade`. For PostgreSQL migrations are
statements without a connection: the ledger's own driver carries them out, and no second one is
needed. So a migration is made of statements, and never of what it finds.
"""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Dialect, create_engine
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

__all__ = ["POSTGRES_SCHEMA", "SCHEMA", "freeze", "freeze_for_postgres", "statements", "upgrade"]

SCHEMA = Path(__file__).parent.parent / "schema.sql"
POSTGRES_SCHEMA = Path(__file__).parent.parent / "postgres" / "schema.sql"

_POSTGRES: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has not typed it

# Alembic's own.
_VERSION_TABLE = """\
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def upgrade(connection: sqlite3.Connection, version: str = "head") -> None:
    """
    Bring the open database to a version, whole or not at all.

    Args:
        connection: In autocommit mode and outside a transaction; stays open.
        version: `head` is the newest.

    Raises:
        sqlite3.Error: It cannot be done: the tables are not those of the version that it says.
    """
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with engine.connect() as bound:
        # Python's sqlite3 opens no transaction for CREATE TABLE by itself; a migration that
        # fails half way would leave half of its tables.
        bound.exec_driver_sql("BEGIN IMMEDIATE")
        config = _config()
        config.attributes["connection"] = bound
        try:
            command.upgrade(config, version)
        except DBAPIError as error:
            # In the driver's words, as everywhere; leaving rolls back.
            if isinstance(error.orig, sqlite3.Error):
                raise error.orig from error
            raise
        bound.commit()


def freeze() -> str:
    """Return the statements that make a database equal to one that was migrated from nothing."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    upgrade(connection)
    statements = [
        # SQLite makes and fills its own tables.
        f"{sql.strip()};"
        for (sql,) in connection.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
            " ORDER BY type DESC, name"
        )
    ]
    (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    connection.close()
    lines = "\n\n".join(
        line.replace("\t", "    ").replace(" \n", "\n").replace("\n)\n WITHOUT", "\n) WITHOUT")
        for line in statements
    )
    return (
        "-- What the migrations make of nothing; written by fleetform.store.migrations.upgrade.\n\n"
        f"{lines}\n\nINSERT INTO alembic_version VALUES ('{version}');\n"
    )


def statements(since: str | None) -> str:
    """Return what brings a PostgreSQL ledger from a version (None: nothing at all) to the newest."""
    output = io.StringIO()
    config = _config()
    config.output_buffer = output
    config.attributes["dialect"] = "postgresql"
    command.upgrade(config, f"{since or 'base'}:head", sql=True)
    return output.getvalue()


def freeze_for_postgres() -> str:
    """Return the statements that make the tables in an empty schema of PostgreSQL."""
    from fleetform.store.schema import VERSION
    from fleetform.store.tables import metadata

    made: list[str] = []
    for table in metadata.sorted_tables:
        elements: list[ExecutableDDLElement] = [CreateTable(table)]
        elements += [
            CreateIndex(one) for one in sorted(table.indexes, key=lambda one: str(one.name))
        ]
        made += [str(element.compile(dialect=_POSTGRES)).strip() for element in elements]
    made.append(_VERSION_TABLE)
    made.append(f"INSERT INTO alembic_version VALUES ('{VERSION}')")  # noqa: S608 -- our own word
    lines = "\n\n".join(f"{one};".replace("\t", "    ").replace(" \n", "\n") for one in made)
    return (
        "-- What `tables` says, for PostgreSQL; written by fleetform.store.migrations.upgrade.\n\n"
        f"{lines}\n"
    )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config


if __name__ == "__main__":
    SCHEMA.write_text(freeze(), encoding="utf-8")
    POSTGRES_SCHEMA.write_text(freeze_for_postgres(), encoding="utf-8")
