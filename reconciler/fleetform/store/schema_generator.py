"""
Writes `schema.sql` of both databases from `tables`: a new ledger then costs milliseconds.

`python -m fleetform.store.schema_generator --write`, or `--check`, which says what is not current.
Migrations bring older ledgers to the same tables; tests compare what both make.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from sqlalchemy import Dialect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable, ExecutableDDLElement

from fleetform.store.schema import VERSION
from fleetform.store.tables import metadata

__all__ = ["POSTGRES_SCHEMA", "SCHEMA", "schema_for"]

SCHEMA = Path(__file__).with_name("schema.sql")
POSTGRES_SCHEMA = Path(__file__).parent / "postgres" / "schema.sql"

_SQLITE: Dialect = sqlite.dialect()
_POSTGRES: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy has not typed it

_DIALECTS = {SCHEMA: _SQLITE, POSTGRES_SCHEMA: _POSTGRES}

# Alembic's own.
_VERSION_TABLE = """\
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def schema_for(path: Path) -> str:
    """Return the statements that make all tables, for the database that `path` is of."""
    made: list[str] = []
    for table in metadata.sorted_tables:
        elements: list[ExecutableDDLElement] = [CreateTable(table)]
        elements += [
            CreateIndex(one) for one in sorted(table.indexes, key=lambda one: str(one.name))
        ]
        made += [_text(str(one.compile(dialect=_DIALECTS[path]))) for one in elements]
    made.append(_VERSION_TABLE)
    made.append(f"INSERT INTO alembic_version VALUES ('{VERSION}')")  # noqa: S608 -- our own word
    return "".join(
        ["-- Written from `tables` by `make generate`.\n", *(f"\n{one};\n" for one in made)]
    )


def _text(statement: str) -> str:
    lines = re.sub(r"\s+\n", "\n", statement.strip().replace("\t", "    "))
    return lines.replace("\n)\n WITHOUT", "\n) WITHOUT")


def main(arguments: list[str]) -> int:
    outdated = [path for path in _DIALECTS if path.read_text(encoding="utf-8") != schema_for(path)]
    for path in outdated:
        if "--check" in arguments:
            sys.stderr.write(f"{path} is not current: run `make generate`\n")
        else:
            path.write_text(schema_for(path), encoding="utf-8")
    return 1 if outdated and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
