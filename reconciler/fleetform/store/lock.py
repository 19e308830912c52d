"""
File locks: they say which process makes changes and manages runs.

The kernel holds the lock and frees it when its process dies, so that no lock outlives its
holder. The file's content only names the holder, and counts while the lock is held.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Self

from fleetform.model.leadership import Holder
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.errors import RESTORE, MovedLedgerError

__all__ = ["FileLocation", "FileLock", "asking", "is_asked", "try_lock", "who_holds"]


_PAUSES_SECONDS = (0.002, 0.01, 0.03)
"""Between two looks at what lasts microseconds unless the machine is busy."""


class FileLock:
    """
    A lock that is held until `release` or the end of the process.

    Implements `model.leadership.ManagerLease`.
    """

    def __init__(self, path: Path, descriptor: int, holder: Holder) -> None:
        self._descriptor: int | None = descriptor
        self._location = FileLocation(path, "the lock", descriptor)
        self.holder = holder

    def require(self) -> None:
        """
        Make sure that its file is still there; else the lock excludes no other process.

        Raises:
            MovedLedgerError: Whoever asks for the lock now asks for another one.
        """
        assert self._descriptor is not None, "the lock was released"
        self._location.require()

    def renew(self) -> None:
        """Do nothing: it does not end by itself."""

    def release(self) -> None:
        """Give it up; a second time does nothing. The file stays: removing it would race."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.ftruncate(descriptor, 0)
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def try_lock(path: Path, *, who: str, command: str, now_ms: int) -> FileLock | None:
    """Take the lock, or return None within 50 ms when another process holds it."""
    make_private_folder(path.parent)
    # Not inherited: a child that kept the descriptor would keep the lock.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    if not _take(descriptor):
        os.close(descriptor)
        return None
    holder = Holder(os.getpid(), who, command, now_ms, os.uname().nodename)
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps(asdict(holder)).encode(), 0)
    except OSError:
        # A full disk: a process that cannot write its name must not exclude others either.
        os.close(descriptor)
        raise
    return FileLock(path, descriptor, holder)


def _take(descriptor: int) -> bool:
    # A process that calls `who_holds` or `is_asked` has a lock for some microseconds and is no holder.
    for pause_seconds in (*_PAUSES_SECONDS, 0):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(pause_seconds)
        else:
            return True
    return False


def who_holds(path: Path) -> Holder | None:
    """
    Return the holder of the lock, or None when it is free.

    A holder writes its name just after it takes the lock, and wipes it just before it releases it.
    One without a name is looked at again for 50 ms: then it is a holder of another release.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        for pause_seconds in (*_PAUSES_SECONDS, 0):
            try:
                # Shared, so that two who ask do not take each other for the holder.
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                if found := _read_holder(descriptor):
                    return found
            else:
                return None
            time.sleep(pause_seconds)
    finally:
        os.close(descriptor)
    return Holder(0, "", "", 0, "")


def _read_holder(descriptor: int) -> Holder | None:
    try:
        return Holder(**json.loads(os.pread(descriptor, 4096, 0)))
    except (ValueError, TypeError):
        return None


# -- asking its holder to give it up --------------------------------------------------------------


@contextlib.contextmanager
def asking(path: Path) -> Iterator[None]:
    """
    Ask the lock's holder to give it up, for as long as this lasts.

    A shared lock on a second file: it needs no room on a full disk and no sound ledger, several
    may ask, and the kernel takes back the request of a process that has died.
    """
    make_private_folder(path.parent)
    descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Waits only for `is_asked`, which has it for some microseconds.
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_asked(path: Path) -> bool:
    """Tell whether any process asks for the lock."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        # Another process that looks has it for some microseconds, and asks for nothing.
        return not _take(descriptor)
    finally:
        os.close(descriptor)


# Whether an open file is still where it was opened.
# A folder may be moved or removed under a process that runs for weeks. Its open files still work, but they are a ledger that
# no other process sees and a lock that excludes no other process: it must end.


class FileLocation:
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
