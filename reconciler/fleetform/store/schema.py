"""
Which version of the schema a database has, and how it gets this release's.

A new ledger is made from `schema.sql` and a current one is only looked at, so that Alembic,
which takes 290 ms to import, is imported when there is something to upgrade and never else.
Versions are four digits and grow, so that newer is told from older by comparing text.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "VERSIONS",
    "create_schema",
    "read_version",
    "upgrade_schema",
]

VERSION = "0003"
"""The newest migration's; a test compares it with the folder."""

VERSIONS = frozenset({"0001", "0002", "0003"})
"""All that a release has ever made; the same test."""

APPLICATION_ID = 0x464C5446
"""`FLTF` in the file's header tells our databases from other programs' (sqlite.org/fileformat2)."""


def create_schema(connection: sqlite3.Connection, version: str = VERSION) -> None:
    """Make all tables in an empty database, as this release has them or as an earlier one had."""
    if version != VERSION:
        from fleetform.store.migrations.upgrade import upgrade

        upgrade(connection, version)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        return
    statements = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    connection.executescript(f"BEGIN;\n{statements}\nCOMMIT;")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def read_version(connection: sqlite3.Connection) -> str | None:
    """Return the version of the schema, or None for a database that is none of ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def upgrade_schema(connection: sqlite3.Connection) -> None:
    """Run the migrations that an older ledger lacks."""
    from fleetform.store.migrations.upgrade import upgrade

    upgrade(connection)
