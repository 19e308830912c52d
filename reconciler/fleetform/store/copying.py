"""
A whole ledger from one database into another: all rows of all tables, as they are.

For a copy in which something is tried out, a backup, and a move between SQLite and PostgreSQL.
The schema's tables are the same in both; which they are is asked of SQLite's side.
"""

# ruff: noqa: S608 -- names of our own tables and columns; values are bound.

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.store.database import Database
from fleetform.store.schema import create_schema

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["BATCH_ROWS", "TABLES", "columns_of", "copy_rows", "copy_to_memory"]

TABLES = (
    "meta", "plans", "resources", "instances", "runs", "attempts", "jobs", "allocations", "units",
    "events", "applies", "operations", "usage", "overrides", "snapshots",
)  # fmt: skip
"""
In an order in which every row finds what it refers to. Without `leases`: who holds an
environment is a fact about processes and not about what they wrote.
"""

BATCH_ROWS = 10_000
"""Rows that are sent at a time: some 20 MB of documents."""


def copy_to_memory(source: Statements) -> Database:
    """Return a SQLite ledger in memory with every row of `source`."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    create_schema(connection)
    connection.execute("BEGIN")
    copy_rows(source, connection, columns_of(connection))
    connection.execute("COMMIT")
    connection.execute("PRAGMA foreign_keys = ON")
    return Database(connection)


def columns_of(connection: sqlite3.Connection) -> dict[str, tuple[str, ...]]:
    """Return the names of each table's columns, in the order of `TABLES`."""
    found: dict[str, tuple[str, ...]] = {}
    for table in TABLES:
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
        found[table] = tuple(row[1] for row in rows)
    return found


def copy_rows(
    source: Statements, target: Statements, columns: dict[str, tuple[str, ...]]
) -> dict[str, int]:
    """
    Copy every row inside a transaction of each side; the target's tables are empty.

    Returns:
        How many rows each table had.
    """
    counts: dict[str, int] = {}
    for table, names in columns.items():
        rows = source.execute(f"SELECT {', '.join(names)} FROM {table}").fetchall()
        insert = (
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' for _ in names)})"
        )
        for first in range(0, len(rows), BATCH_ROWS):
            target.executemany(insert, _batch(rows, first))
        counts[table] = len(rows)
    return counts


def _batch(rows: Sequence[Sequence[object]], first: int) -> Sequence[Sequence[object]]:
    return rows[first : first + BATCH_ROWS]
