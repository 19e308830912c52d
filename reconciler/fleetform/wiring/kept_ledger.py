"""
Keeps the ledger that is there before another takes its place.

One that can be read is backed up. One that cannot is put aside with its log: without it the file
would lack its last commits, and a new ledger beside an old log would be damaged by it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fleetform.store.backup import BackupError
from fleetform.store.errors import DamagedLedgerError, LedgerError, OlderLedgerError
from fleetform.store.reads import Reads
from fleetform.wiring.clock import SystemClock
from fleetform.wiring.ledger_address import has_address
from fleetform.wiring.opening import open_for_writing
from fleetform.wiring.problems import LedgerProblem, Problem

if TYPE_CHECKING:
    from fleetform.model.ports import Reader
    from fleetform.wiring.workspace import Workspace

__all__ = ["is_damaged", "keep_ledger", "told"]

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
    folder = workspace.paths.environment / "backups"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"before-{before}-{now_ms}.jsonl"
    try:
        reader = _reader(workspace)
        if reader is None:
            return ""
        assert isinstance(reader, Reads)
        with contextlib.closing(reader), told():
            reader.backup(target, who=who, now_ms=now_ms)
    except (LedgerError, LedgerProblem) as problem:
        if not is_damaged(problem):
            raise
        return _put_aside(workspace.paths.ledger, folder / f"damaged-{now_ms}")
    return str(target)


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


def _reader(workspace: Workspace) -> Reader | None:
    try:
        return workspace.reader()
    except LedgerProblem as problem:
        if not isinstance(problem.__cause__, OlderLedgerError):
            raise
        # Whoever writes upgrades it, which is what the caller is about to do.
        open_for_writing(workspace).close()
        return workspace.reader()


def _put_aside(ledger: Path, folder: Path) -> str:
    folder.mkdir(mode=0o700)
    for suffix in _FILES:
        file = ledger.with_suffix(suffix)
        if file.exists():
            file.replace(folder / file.name)
    return str(folder)
