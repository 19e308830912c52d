"""
Which version of the schema a database has, and how it gets this release's.

A new ledger is created from `schema.sql` and a current one is only looked at. SQLAlchemy, which takes 190 ms to import, is
imported only when there is something to upgrade.
Versions are four digits and grow, so that newer is told from older by comparing text.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "VERSIONS",
    "WHY",
    "columns_of",
    "create_schema",
    "is_of_another_shape",
    "lacking",
    "read_version",
    "upgrade_schema",
]


VERSION = "0009"
"""The newest version that `tables` names; a test compares both."""

VERSIONS = frozenset({"0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009"})
"""All that a release has ever made; the same test."""

APPLICATION_ID = 0x464C5446
"""`FLTF` in the file's header tells our databases from other programs' (sqlite.org/fileformat2)."""


def create_schema(connection: sqlite3.Connection, version: str = VERSION) -> None:
    """Create all tables in an empty database, as this release has them or as an earlier one had."""
    if version == VERSION:
        text = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
    else:
        from fleetform.store.schema_generator import statements

        text = ";\n".join((*statements("sqlite", until=version), ""))
    connection.executescript(f"BEGIN;\n{text}\nCOMMIT;")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def read_version(connection: sqlite3.Connection) -> str | None:
    """Return the version of the schema, or None for a database that is not fleetform's."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    if application != APPLICATION_ID:
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def upgrade_schema(connection: sqlite3.Connection) -> None:
    """
    Add what an older ledger lacks, whole or not at all.

    Args:
        connection: In autocommit mode and outside a transaction.

    Raises:
        sqlite3.Error: Its tables are not those of the version that it says.
    """
    from fleetform.store.schema_generator import statements

    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements("sqlite", after=read_version(connection) or ""):
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


# Whether a database that says that it is a ledger of this release has its tables.
# A version is one word in one row: an earlier build of an unreleased version, an upgrade by hand or a
# copy of parts of a database contain it as well. Writers check before they write anything; a reader
# meets the first missing column, and gets the same message.

WHY = "an earlier build of this version created it, or an upgrade was interrupted"

_DIGEST = "aca13895bba9a2ddfa9e50dd9b738f65452791d396fe6f1123bcb124739202fe"
"""Of all tables and columns of `schema.sql`; comparing takes 0.7 ms, and making them 5."""

_NAMES_SHOWN = 5

# What SQLite says with its most general code (src/build.c, src/resolve.c); what else it says with that
# is a fault of ours.
_OTHERWISE = re.compile(
    r"no such (table|column|index)\b|has no column named|duplicate column name|already exists$"
)


def lacking(found: Iterable[tuple[str, str]]) -> str:
    """
    Say which tables and columns of this release a ledger lacks; empty where it has them all.

    Args:
        found: Each column that is there, as (table, column). Further columns do no harm.
    """
    there = set(found)
    if _digest(there) == _DIGEST:
        return ""
    with closing(sqlite3.connect(":memory:")) as fresh:
        fresh.executescript(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))
        wanted = columns_of(fresh)
    tables = {table for table, _ in there}
    names = {
        table if table not in tables else f"{table}.{column}"
        for table, column in wanted
        if (table, column) not in there
    }
    shown = sorted(names)[:_NAMES_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def columns_of(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute(
        "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p"
        " WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'"
    ).fetchall()


def is_of_another_shape(error: sqlite3.Error) -> bool:
    """Tell whether a statement failed because a table or column is not as fleetform creates it."""
    return bool(_OTHERWISE.search(str(error)))


def _digest(columns: Iterable[tuple[str, str]]) -> str:
    lines = "\n".join(f"{table}.{column}" for table, column in sorted(columns))
    return hashlib.sha256(lines.encode()).hexdigest()
