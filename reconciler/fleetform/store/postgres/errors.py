"""
What PostgreSQL and its driver raise, in the ledger's words.

By SQLSTATE (postgresql.org/docs/current/errcodes-appendix.html), and for what never reached the
server by type. What is not here is a fault of ours and stays what it is. The sentences name the
ledger without its password; the driver's own, which may quote an address, is never passed on
where one is being read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from fleetform.store.errors import (
    RESTORE,
    RESTORE_SCHEMA,
    AddressError,
    DamagedLedgerError,
    LedgerBusyError,
    LedgerError,
    LedgerFullError,
    LoginError,
    ReadOnlyLedgerError,
    UnreachableLedgerError,
)
from fleetform.store.postgres.address import Address
from fleetform.store.schema import WHY

__all__ = ["LOST", "STARTING", "is_lost", "translated"]

LOST: tuple[type[BaseException], ...] = (
    OSError,
    TimeoutError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.ConnectionFailureError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InternalClientError,
)
"""After one of these the connection is no more."""

STARTING = asyncpg.CannotConnectNowError
"""A server that starts, or recovers after a crash: seconds."""

_AGAIN = "see whether the database server runs and can be reached, then run the same command again"

# First match wins; the longer beginning of a SQLSTATE comes first.
_KINDS: tuple[tuple[str | tuple[str, ...], type[LedgerError], str, str], ...] = (
    (
        "28",
        LoginError,
        "refuses this user",
        "check user and password in FLEETFORM_LEDGER, or in the file that FLEETFORM_LEDGER_FILE names",
    ),
    (
        "3D000",
        AddressError,
        "does not exist on this server",
        "create it with `createdb`, or name another one in FLEETFORM_LEDGER",
    ),
    (
        "3F000",
        DamagedLedgerError,
        "has lost its schema",
        RESTORE,
    ),
    (
        "42P01",
        DamagedLedgerError,
        "has lost a table",
        RESTORE_SCHEMA,
    ),
    (
        # A column is missing or exists already, or a table exists already.
        ("4270", "42P07"),
        DamagedLedgerError,
        f"has other tables than this release creates: {WHY}",
        RESTORE_SCHEMA,
    ),
    (
        # Making the schema has a sentence of its own, in `schema`.
        "42501",
        ReadOnlyLedgerError,
        "does not permit this user to do that",
        "name the user who owns it in FLEETFORM_LEDGER, or let that one run `GRANT ITS_NAME TO YOURS`",
    ),
    (
        "25006",
        ReadOnlyLedgerError,
        "can only be read: it is a standby, or set to be read only",
        "name the primary in FLEETFORM_LEDGER; target_session_attrs=read-write finds it",
    ),
    ("55P03", LedgerBusyError, "is being written by another process", "try again when it is done"),
    ("57014", LedgerBusyError, "took too long to answer", "try again when it is less busy"),
    ("40", LedgerBusyError, "is being written by another process", "try again"),
    ("53300", LedgerBusyError, "has no connection left", "raise max_connections, or try again"),
    (
        "53",
        LedgerFullError,
        "has run out of space or memory; nothing was written and nothing is lost",
        "free some on its server and run the same command again",
    ),
    ("57", UnreachableLedgerError, "is shutting down or starting", _AGAIN),
    (
        "25P03",
        UnreachableLedgerError,
        "has ended the session, because this process was suspended",
        _AGAIN,
    ),
    ("08", UnreachableLedgerError, "does not answer", _AGAIN),
    (
        "XX",
        DamagedLedgerError,
        "is damaged",
        RESTORE_SCHEMA,
    ),
    (
        "58",
        DamagedLedgerError,
        "cannot read its own files",
        f"look at its server's log; {RESTORE_SCHEMA}",
    ),
)


def is_lost(error: BaseException) -> bool:
    """Tell whether the connection is gone with this error."""
    if isinstance(error, LOST):
        return True
    return isinstance(error, asyncpg.InterfaceError) and "clos" in str(error)


@contextmanager
def translated(address: Address) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except asyncpg.PostgresError as error:
        for state, kind, what, advice in _KINDS:
            if (error.sqlstate or "").startswith(state):
                said = f"the ledger at {address.shown} {what} ({error})"
                raise kind(said, advice=advice) from error
        raise
    except asyncpg.ClientConfigurationError:
        raise AddressError(
            "the address of the ledger cannot be used",
            advice="check its options (sslmode, sslrootcert, …) in FLEETFORM_LEDGER",
        ) from None
    except (asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError, OSError) as error:
        if not is_lost(error):
            raise
        why = _why(error)
        raise UnreachableLedgerError(
            f"the ledger at {address.shown} does not answer ({why})", advice=_AGAIN
        ) from error


def _why(error: BaseException) -> str:
    """Say what the machine said: `connection refused`, without repeated numbers and addresses."""
    # Where a name has several addresses, the loop puts what each of them said into one sentence.
    numbers = {int(one) for one in re.findall(r"\[Errno (\d+)\]", str(error))}
    if len(numbers) == 1:
        said = os.strerror(numbers.pop())
        return said[:1].lower() + said[1:]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror[:1].lower() + error.strerror[1:]
    return str(error) or "no answer in time"
