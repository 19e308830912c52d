"""
Where the ledger is: a file in the state folder, or the PostgreSQL database that a variable names.

The address has a password in it. So it is read from the environment of this process or from a
file that nobody else can read, and is passed to nobody: agents are started without it.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.paths import environments_folder
from fleetform.app.problems import LedgerProblem

if TYPE_CHECKING:
    from fleetform.store.backend import LedgerBackend

__all__ = ["FILE_VARIABLE", "VARIABLE", "ledger_backend"]

VARIABLE = "FLEETFORM_LEDGER"
"""A URL, `postgresql://…`; not set or empty: the ledger is a SQLite file in the state folder."""

FILE_VARIABLE = "FLEETFORM_LEDGER_FILE"
"""Names a file with that URL in it, which only its owner may read."""

_LONGEST_BYTES = 8192


def ledger_backend(home: Path) -> LedgerBackend:
    """
    Return the place of ledgers that this process uses: the only choice between both kinds.

    Args:
        home: The state folder, which has the ledgers unless a database is named.

    Raises:
        LedgerProblem: The address cannot be read or used, or its driver is not installed. No message
            quotes it.
    """
    url, file = os.environ.get(VARIABLE, ""), os.environ.get(FILE_VARIABLE, "")
    if not url and not file:
        from fleetform.store.sqlite import SqliteBackend

        return SqliteBackend(environments_folder(home))
    if url and file:
        raise LedgerProblem(
            f"both {VARIABLE} and {FILE_VARIABLE} say where the ledger is",
            "unset one of them",
        )
    return _in_database(url or _read(Path(file)))


def _in_database(url: str) -> LedgerBackend:
    from fleetform.store.errors import LedgerError
    from fleetform.store.postgres.address import Address

    try:
        address = Address.parse(url)
    except LedgerError as problem:
        raise LedgerProblem(str(problem), problem.advice) from None
    try:
        from fleetform.store.postgres.backend import PostgresBackend
    except ModuleNotFoundError as missing:
        raise LedgerProblem(
            f"a ledger on PostgreSQL needs the package {missing.name}",
            "in the clone of fleetform, run `pip install '.[postgresql]'`; or unset FLEETFORM_LEDGER",
        ) from missing
    return PostgresBackend(address)


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
