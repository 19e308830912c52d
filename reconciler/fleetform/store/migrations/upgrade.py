"""
Runs migrations on a connection; the only place that imports Alembic's machinery.

A new ledger is made of `schema.sql`, and needs none. For PostgreSQL migrations are statements without
a connection: the ledger's own driver carries them out, and no second one is needed. So a migration
is made of statements, and never of what it finds.
"""

from __future__ import annotations

import io
import sqlite3
from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

__all__ = ["statements", "upgrade"]


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


def statements(since: str | None) -> str:
    """Return what brings a PostgreSQL ledger from a version (None: nothing at all) to the newest."""
    output = io.StringIO()
    config = _config()
    config.output_buffer = output
    config.attributes["dialect"] = "postgresql"
    command.upgrade(config, f"{since or 'base'}:head", sql=True)
    return output.getvalue()


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    return config
