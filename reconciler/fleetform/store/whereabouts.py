"""
Whether a file that is open still lies where it was opened.

A folder may be moved or removed under a process that runs for weeks. What it has open goes on to
work, and is a ledger that nobody else sees and a lock that keeps nobody off: it must end.
"""

from __future__ import annotations

import os
from pathlib import Path

from fleetform.store.errors import RESTORE, MovedLedgerError

__all__ = ["Whereabouts"]


class Whereabouts:
    """
    Where a file was opened, and which file that was.

    Args:
        path: Its name.
        what: What it is, in the words of a sentence.
        descriptor: Of the open file; None where another library has it: then it is the file that
            has the name now.
    """

    def __init__(self, path: Path, what: str, descriptor: int | None = None) -> None:
        self._path = str(path)
        self._what = what
        self._identity = _identity(path.stat() if descriptor is None else os.fstat(descriptor))

    def require(self) -> None:
        """
        Make sure that it is there still; costs microseconds.

        Raises:
            MovedLedgerError: Another file has its name, or none has.
        """
        try:
            found = _identity(os.stat(self._path))  # noqa: PTH116 -- fifty times a second
        except (FileNotFoundError, NotADirectoryError):
            found = None
        except OSError:
            # Nothing is known of it now; whoever reads or writes meets it.
            return
        if found != self._identity:
            raise MovedLedgerError(
                f"{self._what} at {self._path} was moved or removed while it was in use, and new"
                " writes to it are lost",
                advice=f"put its folder back, and run the command again; if it is gone, {RESTORE}",
            )


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
