"""
Keeps the ledger that is there before another takes its place.

One that can be read is backed up. One that cannot is put aside with its log: without it the file
would lack its last commits, and a new ledger beside an old log would be damaged by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.app.clock import SystemClock
from fleetform.app.ledger_address import has_address
from fleetform.app.problems import LedgerProblem, Problem
from fleetform.spec.private_folder import make_private_folder
from fleetform.store.backup import BackupError
from fleetform.store.errors import DamagedLedgerError, LedgerError
from fleetform.store.reads import Reads

if TYPE_CHECKING:
    from fleetform.app.workspace import Workspace

__all__ = ["KEPT_MAX", "backup_before", "is_damaged", "keep_ledger", "told"]

KEPT_MAX = 10
"""How many backups of one kind stay: of a large ledger each is as large as the ledger."""

_FILES = (".db", ".db-wal", ".db-shm")


def keep_ledger(workspace: Workspace, *, who: str, before: str) -> str:
    """
    Back up what is there, or put aside what cannot be read.

    Args:
        workspace: Whose ledger; the caller manages it.
        who: For the backup.
        before: What is about to be done: it is in the backup's name.

    Returns:
        Where it is kept now; nothing where there was no ledger.
    """
    now_ms = SystemClock().now_ms()
    folder = _folder(workspace)
    try:
        reader = workspace.reader()
        if reader is None:
            return ""
        assert isinstance(reader, Reads)
        with contextlib.closing(reader):
            return str(backup_before(workspace, before, partial(reader.backup, who=who)))
    except (LedgerError, LedgerProblem) as problem:
        if not is_damaged(problem):
            raise
        return _put_aside(workspace.paths.ledger, folder / f"damaged-{now_ms}")


def backup_before(workspace: Workspace, before: str, write: Callable[..., object]) -> Path:
    """
    Have a backup written into the state folder; the oldest of its kind beyond `KEPT_MAX` go.

    Args:
        workspace: Whose ledger.
        before: What is about to be done: it is in the backup's name.
        write: Takes the backup's path and `now_ms`, and writes it.
    """
    now_ms = SystemClock().now_ms()
    folder, prefix = _folder(workspace), f"before-{before}-"
    target = folder / f"{prefix}{now_ms}.jsonl"
    with told():
        write(target, now_ms=now_ms)
    for old in sorted(folder.glob(f"{prefix}[0-9]*.jsonl"), key=_moment)[:-KEPT_MAX]:
        old.unlink(missing_ok=True)
    return target


def _folder(workspace: Workspace) -> Path:
    folder = workspace.paths.environment / "backups"
    make_private_folder(folder)
    return folder


def _moment(backup: Path) -> int:
    digits = backup.stem.rpartition("-")[2]
    return int(digits) if digits.isdecimal() else 0


def is_damaged(problem: LedgerError | LedgerProblem) -> bool:
    """Tell whether it is a file that nobody can read: it, and no server's ledger, can be moved."""
    cause = problem.__cause__ if isinstance(problem, LedgerProblem) else problem
    return isinstance(cause, DamagedLedgerError) and not has_address()


@contextlib.contextmanager
def told() -> Iterator[None]:
    """Turn what is wrong with a backup into a person's problem."""
    try:
        yield
    except BackupError as problem:
        raise Problem(str(problem), problem.advice) from problem


def _put_aside(ledger: Path, folder: Path) -> str:
    folder.mkdir(mode=0o700)
    for suffix in _FILES:
        file = ledger.with_suffix(suffix)
        if file.exists():
            file.replace(folder / file.name)
    return str(folder)
