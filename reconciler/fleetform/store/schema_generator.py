"""
Writes the statements that create the tables of a ledger, or add to those of an earlier release.

All of them follow from `tables`, where each table, column and index says which version added it. The statements for a new
ledger are shipped as `schema.sql`, so that it costs milliseconds: `python -m fleetform.store.schema_generator --write`,
or `--check`, which says what is not current. An upgrade writes its own, and imports SQLAlchemy for that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Column, Dialect, Index, Table
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable, ExecutableDDLElement

from fleetform.store.schema import VERSION
from fleetform.store.tables import FIRST, metadata

__all__ = ["POSTGRES_SCHEMA", "SCHEMA", "schema_for", "statements"]

SCHEMA = Path(__file__).with_name("schema.sql")
POSTGRES_SCHEMA = Path(__file__).parent / "postgres" / "schema.sql"

_DIALECTS: dict[str, Dialect] = {
    "sqlite": sqlite.dialect(),
    "postgresql": postgresql.dialect(),  # type: ignore[no-untyped-call]  # SQLAlchemy has not typed it
}
_DIALECT_OF = {SCHEMA: "sqlite", POSTGRES_SCHEMA: "postgresql"}

# Called so because Alembic created it in the ledgers of the first releases.
_VERSION_TABLE = """\
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)"""


def statements(dialect: str, *, after: str = "", until: str = VERSION) -> list[str]:
    """
    Return what brings a ledger from one version of the schema to a later one.

    Args:
        dialect: `sqlite` or `postgresql`.
        after: The version that the ledger has; empty: it has no tables yet.
        until: The version that it gets.
    """
    made = [
        _tidy(one if isinstance(one, str) else str(one.compile(dialect=_DIALECTS[dialect])))
        for table in metadata.sorted_tables
        for one in _additions(table, after, until, _DIALECTS[dialect])
    ]
    if after:
        return [*made, f"UPDATE alembic_version SET version_num = '{until}'"]  # noqa: S608 -- our own word
    insert = f"INSERT INTO alembic_version VALUES ('{until}')"  # noqa: S608 -- our own word
    return [*made, _VERSION_TABLE, insert]


def _additions(
    table: Table, after: str, until: str, dialect: Dialect
) -> Iterator[ExecutableDDLElement | str]:
    """Yield what is new in a table: all of it, or its later columns, then the later indexes."""
    if _since(table) > until:
        return
    if _since(table) > after:
        create = CreateTable(table)
        create.columns = [one for one in create.columns if _since(one.element) <= until]
        yield create
    else:
        for column in table.columns:
            if after < _since(column) <= until:
                added = CreateColumn(column).compile(dialect=dialect)
                yield f"ALTER TABLE {table.name} ADD COLUMN {added}"
    for index in sorted(table.indexes, key=lambda one: str(one.name)):
        if after < max(_since(index), _since(table)) <= until:
            yield CreateIndex(index)


def _since(one: Table | Column[object] | Index) -> str:
    return str(one.info.get("since", FIRST))


def _tidy(statement: str) -> str:
    lines = re.sub(r"\s+\n", "\n", statement.strip().replace("\t", "    "))
    return lines.replace("\n)\n WITHOUT", "\n) WITHOUT")


def schema_for(path: Path) -> str:
    """Return the text of a `schema.sql`, for the database that `path` is of."""
    made = statements(_DIALECT_OF[path])
    return "".join(
        ["-- Written from `tables` by `make generate`.\n", *(f"\n{one};\n" for one in made)]
    )


def main(arguments: list[str]) -> int:
    outdated = [
        path for path in _DIALECT_OF if path.read_text(encoding="utf-8") != schema_for(path)
    ]
    for path in outdated:
        if "--check" in arguments:
            sys.stderr.write(f"{path} is not current: run `make generate`\n")
        else:
            path.write_text(schema_for(path), encoding="utf-8")
    return 1 if outdated and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
