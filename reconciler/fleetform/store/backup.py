"""
A whole ledger in one file, and back: the same form for SQLite and PostgreSQL.

    {"format": "fleetform-ledger", "version": 1, "environment_uid": …, "sha256": …}
    {"table": "meta", "columns": ["id", "environment_uid", …]}
    [1, "a2222222222242228222222222222222", …]
    …

JSON lines: a head, then each table's columns followed by its rows. The digest in the head is of
all bytes after that line, so that half a file is known as one. Bytes are `{"base64": …}`.
"""

from __future__ import annotations

# ruff: noqa: S608 -- names of our own tables and columns; values are bound.
import base64
import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from fleetform.model.ledger import LedgerStatus
from fleetform.store.database import Database, Transaction
from fleetform.store.schema import VERSION, VERSIONS, create_schema, upgrade_schema

if TYPE_CHECKING:
    from fleetform.store.statements import Statements
__all__ = [
    "BATCH_ROWS",
    "TABLES",
    "BackupError",
    "Head",
    "columns_of",
    "copy_to_memory",
    "read_backup",
    "read_head",
    "restore_rows",
    "write_backup",
]


_FORMAT = "fleetform-ledger"
_FORMAT_VERSION = 1
_NO_DIGEST = "0" * 64
_HEAD_BYTES_MAX = 65_536


class BackupError(Exception):
    """A backup cannot be written, or a file is none that can be restored; `advice` is what to do."""

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


@dataclass(frozen=True, slots=True)
class Head:
    """
    What a backup says of itself.

    Attributes:
        schema: The ledger's version, as in `store.schema`.
        made_at_ms: Unix milliseconds.
        rows: How many there are, a table.
        sha256: Of all that follows the head's line.
    """

    environment_uid: str
    ledger_id: str
    epoch: int
    fence: int
    schema: str
    made_at_ms: int
    who: str
    rows: dict[str, int]
    sha256: str
    format: str = _FORMAT
    version: int = _FORMAT_VERSION


# -- writing --------------------------------------------------------------------------------------


def write_backup(
    source: Statements, path: Path, *, who: str, now_ms: int, version: str = VERSION
) -> Head:
    """
    Write every row of one reading of a ledger; the file appears whole, with mode 0600.

    `version` is the ledger's, which an earlier release may have written.

    Raises:
        BackupError: It cannot be written; nothing is left of it.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with _writing(path):
            descriptor = os.open(partial, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            # Counted first, so that the head's line has its length before its digest is known.
            columns = _columns(version)
            head = _head_of(source, columns, who, now_ms, version)
            digest = hashlib.sha256()
            with _writing(path):
                file.write(_line(asdict(head)))
            for line in _lines(source, columns):
                digest.update(line)
                with _writing(path):
                    file.write(line)
            head = replace(head, sha256=digest.hexdigest())
            with _writing(path):
                file.seek(0)
                file.write(_line(asdict(head)))
                file.flush()
                os.fsync(file.fileno())
        with _writing(path):
            partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return head


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Distinguish an error of the file from one of the database, which may be the same exception."""
    try:
        yield
    except OSError as problem:
        raise BackupError(
            f"{path} cannot be written: {problem.strerror or problem}",
            advice="free some space there, or name another folder",
        ) from problem


def _head_of(
    source: Statements, tables: Iterable[str], who: str, now_ms: int, version: str
) -> Head:
    uid, ledger_id, epoch, fence = source.execute(
        "SELECT environment_uid, ledger_id, epoch, fence FROM meta"
    ).fetchone()
    rows = {
        table: int(source.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
        for table in tables
    }
    return Head(uid, ledger_id, epoch, fence, version, now_ms, who, rows, _NO_DIGEST)


def _lines(source: Statements, columns: Mapping[str, Sequence[str]]) -> Iterator[bytes]:
    for table, names in columns.items():
        yield _line({"table": table, "columns": list(names)})
        for row in source.execute(f"SELECT {', '.join(names)} FROM {table}"):
            yield _line([_plain(value) for value in row])


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"base64": base64.b64encode(bytes(value)).decode("ascii")}
    return value


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"


def _columns(version: str = VERSION) -> dict[str, tuple[str, ...]]:
    """Return each table's columns as a version of the ledger has them; without tables that came later."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_schema(connection, version)
        return {table: names for table, names in columns_of(connection).items() if names}


# -- reading --------------------------------------------------------------------------------------


def read_head(path: Path) -> Head:
    """
    Read what a backup says of itself, and see that all of it is there.

    Raises:
        BackupError: It is none, not whole, or of another version.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        head = _parse_head(file.readline(_HEAD_BYTES_MAX), path)
        digest = hashlib.sha256()
        while data := file.read(1 << 20):
            digest.update(data)
    if digest.hexdigest() != head.sha256:
        raise BackupError(
            f"{path} is damaged: its content does not match its digest",
            advice="use another copy of it",
        )
    return head


def _parse_head(line: bytes, path: Path) -> Head:
    try:
        value = json.loads(line)
        if value["format"] != _FORMAT:
            raise ValueError(value["format"])  # noqa: TRY301 -- told as any other file that is none
        if value["version"] > _FORMAT_VERSION or value["schema"] > VERSION:
            raise BackupError(
                f"{path} was written by a newer release of fleetform", advice="upgrade fleetform"
            )
        head = Head(**value)
    except (ValueError, KeyError, TypeError, UnicodeDecodeError) as problem:
        raise BackupError(
            f"{path} is not a backup of a ledger", advice="`fleetform state backup` writes one"
        ) from problem
    if head.schema not in VERSIONS:
        raise BackupError(
            f"{path} says that it has version {head.schema} of the ledger, which no release has"
            " written",
            advice="`fleetform state backup` writes one",
        )
    return head


def read_backup(path: Path) -> Iterator[tuple[str, tuple[str, ...], list[list[Any]]]]:
    """Yield table, columns and some rows at a time, in the order of the file."""
    table: str = ""
    columns: tuple[str, ...] = ()
    rows: list[list[Any]] = []
    with path.open("rb") as file:
        file.readline(_HEAD_BYTES_MAX)
        for line in file:
            value = json.loads(line)
            if isinstance(value, dict):
                if rows:
                    yield table, columns, rows
                table, columns, rows = value["table"], tuple(value["columns"]), []
                continue
            rows.append([_restored(one) for one in value])
            if len(rows) == BATCH_ROWS:
                yield table, columns, rows
                rows = []
    if rows:
        yield table, columns, rows


def _restored(value: Any) -> Any:
    return base64.b64decode(value["base64"]) if isinstance(value, dict) else value


# -- restoring ------------------------------------------------------------------------------------


_NUMBERS = "SELECT epoch, fence, serial FROM meta"


def restore_rows(transaction: Transaction, path: Path, *, who: str, now_ms: int) -> int:
    """
    Replace all rows with those of a backup, as a ledger that knows it is not the newest.

    It gets an epoch and a fence above both, so that no process and host that followed either follows an older one, and is
    recovering until the hosts have been read: they know what happened since.

    Returns:
        The new epoch.
    """
    known = _columns()
    before = transaction.one(_NUMBERS)
    assert before is not None
    for table in reversed(TABLES):
        if table != "meta":
            transaction.execute(f"DELETE FROM {table}")
    for table, columns, rows in _read_upgraded(path):
        assert set(columns) <= set(known[table]), "what is read has the version of this release"
        if table == "meta":
            _write_meta(transaction, columns, rows[0])
        else:
            transaction.many(_insertion(table, columns), rows)
    after = transaction.one(_NUMBERS)
    assert after is not None
    epoch, fence, serial = (max(pair) for pair in zip(before, after, strict=True))
    transaction.execute(
        "UPDATE meta SET epoch = ?, fence = ?, serial = ?, status = ?, note = ?, manager = ?",
        (
            epoch + 1,
            fence + 1,
            serial + 1,
            LedgerStatus.RECOVERING,
            "it was restored from a backup, and the hosts may know newer events",
            who,
        ),
    )
    transaction.log("ledger.restored", now_ms, f"{who} restored the ledger from a backup")
    return int(epoch) + 1


_Rows: TypeAlias = "Iterator[tuple[str, tuple[str, ...], Sequence[Sequence[Any]]]]"


def _read_upgraded(path: Path) -> _Rows:
    """Yield a backup's rows as `read_backup` does, those of an earlier release as this one has them."""
    version = read_head(path).schema
    if version == VERSION:
        yield from read_backup(path)
        return
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        create_schema(connection, version)
        for table, columns, rows in read_backup(path):
            connection.executemany(_insertion(table, columns), rows)
        upgrade_schema(connection)
        for table, columns in columns_of(connection).items():
            cursor = connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
            while some := cursor.fetchmany(BATCH_ROWS):
                yield table, columns, some


def _write_meta(transaction: Transaction, columns: Sequence[str], row: Sequence[Any]) -> None:
    # Never deleted: whoever waits for its row to write would find none.
    said = {name: value for name, value in zip(columns, row, strict=True) if name != "id"}
    transaction.execute(
        f"UPDATE meta SET {', '.join(f'{name} = ?' for name in said)}", tuple(said.values())
    )


def _insertion(table: str, columns: Sequence[str]) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"


# A whole ledger from one database into another: all rows of all tables, as they are.
# For a copy in which something is tried out, a backup, and a move between SQLite and PostgreSQL. Both have the same tables,
# and their columns are read from SQLite's.


TABLES = (
    "meta", "plans", "resources", "instances", "runs", "attempts", "jobs", "allocations", "units",
    "events", "applies", "operations", "usage", "overrides", "snapshots", "offers",
)  # fmt: skip
"""
In an order in which every row finds what it refers to. Without `leases`: who manages an
environment is a fact about processes and not about what they wrote.
"""

BATCH_ROWS = 10_000
"""Rows that are sent at a time: some 20 MB of documents."""


def copy_to_memory(source: Statements) -> Database:
    """Return a SQLite ledger in memory with every row of `source`."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    create_schema(connection)
    connection.execute("BEGIN")
    for table, columns in columns_of(connection).items():
        rows = source.execute(f"SELECT {', '.join(columns)} FROM {table}").fetchall()
        for first in range(0, len(rows), BATCH_ROWS):
            connection.executemany(_insertion(table, columns), rows[first : first + BATCH_ROWS])
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
