"""
Where the ledger is: a file in the state folder, or the PostgreSQL database that a variable names.

The address has a password in it. So it is read from the environment of this process or from a
file that nobody else can read, and is passed to nobody: agents are started without it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.problems import LedgerProblem

if TYPE_CHECKING:
    from fleetform.store.postgres.address import Address

__all__ = [
    "DRIVER_VARIABLES",
    "FILE_VARIABLE",
    "VARIABLE",
    "has_address",
    "ledger_address",
    "postgresql",
]

VARIABLE = "FLEETFORM_LEDGER"
"""A URL, `postgresql://…`; not set or empty: the ledger is a SQLite file in the state folder."""

FILE_VARIABLE = "FLEETFORM_LEDGER_FILE"
"""Names a file with that URL in it, which only its owner may read."""

DRIVER_VARIABLES = (
    "PGDATABASE",
    "PGGSSLIB",
    "PGHOST",
    "PGKRBSRVNAME",
    "PGPASSFILE",
    "PGPASSWORD",
    "PGPORT",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSSLCERT",
    "PGSSLCRL",
    "PGSSLKEY",
    "PGSSLMAXPROTOCOLVERSION",
    "PGSSLMINPROTOCOLVERSION",
    "PGSSLMODE",
    "PGSSLNEGOTIATION",
    "PGSSLROOTCERT",
    "PGTARGETSESSIONATTRS",
    "PGUSER",
)
"""What the driver reads beside the address, as libpq does."""

_LONGEST_BYTES = 8192


def has_address() -> bool:
    """Tell whether a database is named; costs nothing."""
    return bool(os.environ.get(VARIABLE) or os.environ.get(FILE_VARIABLE))


def ledger_address() -> Address | None:
    """
    Return the address of the database that holds ledgers, or None for SQLite.

    Raises:
        LedgerProblem: It cannot be read or used. No message quotes it.
    """
    url, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if not url and not file:
        return None
    if url and file:
        raise LedgerProblem(
            f"both {VARIABLE} and {FILE_VARIABLE} say where the ledger is",
            "unset one of them",
        )
    from fleetform.store.errors import LedgerError
    from fleetform.store.postgres.address import Address

    try:
        return Address.parse(url or _read(Path(file)))
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from None


@contextlib.contextmanager
def postgresql() -> Iterator[None]:
    """Say in one sentence that the driver, which is an extra, is not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        raise LedgerProblem(
            f"a ledger on PostgreSQL needs the package {missing.name}",
            "in the clone of fleetform, run `pip install '.[postgresql]'`; or unset FLEETFORM_LEDGER",
        ) from missing


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise LedgerProblem(f"{path}, which {FILE_VARIABLE} names, is not a regular file")
            if status.st_mode & 0o077:
                raise LedgerProblem(
                    f"{path} holds the ledger's password and can be read by others",
                    f"run `chmod 600 {path}`",
                )
            return file.read(_LONGEST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else "it is not text"
        raise LedgerProblem(
            f"{path}, which {FILE_VARIABLE} names, cannot be read: {why}",
            "write the address of the ledger into it, and nothing else",
        ) from problem
