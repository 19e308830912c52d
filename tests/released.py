"""
Ledgers as earlier releases wrote them, with rows in all tables.

`tests/data/ledgers/NNNN.sql` has the rows that the program of version NNNN wrote when it applied
`lab.yaml` beside it; names of the machine were replaced. `tables/NNNN.sql` has the tables that it had.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

from fleetform.store.postgres.address import Address, schema_of
from fleetform.store.postgres.connection import Connection
from fleetform.store.schema import VERSIONS, create_schema
from fleetform.store.schema_generator import statements

LEDGERS = Path(__file__).parent / "data" / "ledgers"
UID = "0123456789abcdef0123456789abcdef"
RELEASED = tuple(sorted(path.stem for path in LEDGERS.glob("*.sql")))
OLDER = tuple(version for version in RELEASED if version < max(VERSIONS))

CONFIGURATION = (LEDGERS / "lab.yaml").read_text(encoding="utf-8")


def rows_of(version: str) -> str:
    return (LEDGERS / f"{version}.sql").read_text(encoding="utf-8")


def write_file(path: Path, version: str) -> None:
    """Write the ledger of a version into a SQLite file, in the mode in which it was left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        create_schema(connection, version)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(f"BEGIN;\n{rows_of(version)}COMMIT;")


def write_schema(url: str, version: str) -> None:
    """Write the ledger of a version into a schema of a PostgreSQL database, in place of what was there."""
    schema = schema_of(UID)
    connection = Connection(Address.parse(url), schema=schema)
    try:
        connection.script(f"DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}")
        connection.script(";\n".join(statements("postgresql", until=version)))
        connection.script(re.sub(r"X'([0-9a-f]*)'", r"'\\x\1'::bytea", rows_of(version)))
        if version >= "0002":
            connection.script("INSERT INTO leases (name) VALUES ('manager')")
        for table in ("events", "applies", "usage"):
            # As the rows' own numbers would have left it.
            connection.execute(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'number'), max(number))"
                f" FROM {table}"
            )
    finally:
        connection.close()
