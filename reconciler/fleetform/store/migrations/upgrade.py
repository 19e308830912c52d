"""
Runs migrations on a connection; the only place that imports Alembic's machinery.

`freeze` writes `schema.sql`, what all migrations make of nothing, so that a new ledger costs
milliseconds: `python -m fleetform.store.migrations.upgrade`.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.pool import StaticPool

__all__ = ["SCHEMA", "freeze", "upgrade"]

SCHEMA = Path(__file__).parent.parent / "schema.sql"


def upgrade(connection: sqlite3.Connection) -> None:
    """
    Bring the open database to the newest version, whole or not at all.

    Args:
        connection: In autocommit mode and outside a transaction; stays open.
    """
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    with engine.connect() as bound:
        # Python's sqlite3 opens no transaction for CREATE TABLE by itself; a migration that
        # fails half way would leave half of its tables.
        bound.exec_driver_sql("BEGIN IMMEDIATE")
        config = Config()
        config.set_main_option("script_location", str(Path(__file__).parent))
        config.attributes["connection"] = bound
        command.upgrade(config, "head")
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


if __name__ == "__main__":
    SCHEMA.write_text(freeze(), encoding="utf-8")
