"""
What can be wrong with a ledger, split by what a person does next.

    LedgerError
    ├── MissingLedgerError        nothing was ever applied here
    ├── MovedLedgerError          it, or its lock, is not where it was opened: put it back
    ├── DamagedLedgerError        the file is not what we wrote: restore or rebuild
    ├── NewerLedgerError          a later fleetform has written it: upgrade
    ├── OlderLedgerError          an earlier one has, and it is not upgraded yet
    ├── ForeignLedgerError        it belongs to another environment
    ├── NetworkFileSystemError    its locks cannot be trusted where it lies
    ├── ReadOnlyLedgerError       it cannot be written, and will not be by waiting
    ├── AddressError              where it should be is not said, or not so that it can be used
    ├── LoginError                its server refuses this user
    └── LedgerBusyError, LedgerFullError, UnreachableLedgerError   also `LedgerUnavailable`:
                                  try again later

Each message is one sentence; `advice` is the next thing to do.
"""

from __future__ import annotations

from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable

RESTORE = "restore a backup with `fleetform state restore`, or run `fleetform state rebuild`"
"""What to do about a ledger that can be opened, and is not sound."""

RESTORE_FILE = f"{RESTORE}, which renames it"
"""About a file that is no ledger."""

RESTORE_SCHEMA = f"rename its schema with `ALTER SCHEMA … RENAME TO …`, then {RESTORE}"
"""About a schema that is no ledger: what else a database has is moved by its owner only."""

UPGRADE = (
    "run `fleetform state upgrade`, which keeps a backup of it; commands that write do the same"
)
"""What to do about a ledger of an earlier release."""


class LedgerError(LedgerUnusable):
    """Base of what opening, reading or writing a ledger raises."""


class MissingLedgerError(LedgerError):
    pass


class MovedLedgerError(LedgerError):
    """What is open is not seen by other processes any more: each further write would be lost."""


class DamagedLedgerError(LedgerError):
    pass


class NewerLedgerError(LedgerError):
    pass


class OlderLedgerError(LedgerError):
    pass


class ForeignLedgerError(LedgerError):
    """`owner` is the uid of the environment that the file belongs to."""

    def __init__(self, message: str, *, advice: str, owner: str) -> None:
        super().__init__(message, advice=advice)
        self.owner = owner


class NetworkFileSystemError(LedgerError):
    pass


class ReadOnlyLedgerError(LedgerError):
    pass


class LedgerBusyError(LedgerError, LedgerUnavailable):
    """Another process has held the write lock for longer than `database.BUSY_SECONDS`."""


class LedgerFullError(LedgerError, LedgerUnavailable):
    """The disk is full; the transaction was rolled back, so nothing is lost."""


class AddressError(LedgerError):
    """What FLEETFORM_LEDGER or its file says; never quotes it, for a password is in it."""


class LoginError(LedgerError):
    """Wrong password, no such role, one without rights, or no connection taken from here."""


class UnreachableLedgerError(LedgerError, LedgerUnavailable):
    """
    Its server does not answer, or the connection was lost.

    Nothing was written, unless the sentence says that this is not known. It is safe then too to
    do the same again: what was written is compared before anything is written over it.
    """
