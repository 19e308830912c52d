"""A file that is open is one thing, the file that has its name another."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from fleetform.app.clock import RandomIds, SystemClock
from fleetform.store.errors import MovedLedgerError
from fleetform.store.lock import try_lock
from fleetform.store.opening import open_ledger

UID = "0123456789abcdef0123456789abcdef"


def moved_away(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replaced(folder: Path) -> None:
    moved_away(folder)
    folder.mkdir()
    for file in folder.with_name("elsewhere").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())


def removed(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize("lose", [moved_away, replaced, removed])
def test_a_ledger_that_is_not_there_any_more_takes_nothing(tmp_path, lose):
    """It would be written into a file that no other command sees."""
    folder = tmp_path / "environment"
    with closing(open_ledger(folder / "ledger.db", UID, RandomIds(), SystemClock())) as ledger:
        ledger.take_fence(who="ada", now_ms=1)
        lose(folder)
        for use in (ledger.serial, ledger.read_live, lambda: ledger.take_fence(who="b", now_ms=2)):
            with pytest.raises(MovedLedgerError, match="moved or removed"):
                use()
    if lose is moved_away:
        assert not folder.exists()
        elsewhere = folder.with_name("elsewhere") / "ledger.db"
        with closing(open_ledger(elsewhere, UID, RandomIds(), SystemClock())) as ledger:
            assert ledger.read_live().fence == 1


@pytest.mark.parametrize("lose", [moved_away, replaced, removed])
def test_a_lock_that_is_not_there_any_more_is_not_held(tmp_path, lose):
    """Whoever asks next locks another file, and both would manage."""
    path = tmp_path / "environment" / "manager.lock"
    with try_lock(path, who="ada", command="serve", now_ms=1) as manager_lease:
        manager_lease.require()
        lose(path.parent)
        with pytest.raises(MovedLedgerError, match="the lock at"):
            manager_lease.require()


def test_a_file_that_cannot_be_looked_at_is_taken_for_there(tmp_path, monkeypatch):
    """Only what is certain ends a manager."""
    path = tmp_path / "manager.lock"
    with try_lock(path, who="ada", command="serve", now_ms=1) as manager_lease:

        def refuse(*_arguments, **_options):
            raise PermissionError

        with monkeypatch.context() as patched:
            patched.setattr(os, "stat", refuse)
            manager_lease.require()
