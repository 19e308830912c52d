"""
Ledgers in SQLite files: a folder for each environment, with the ledger and its locks in it.

Each method imports what it needs: whoever asks who manages an environment opens no database.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fleetform.model.leadership import Holder, ManagerLease
    from fleetform.model.ports import Clock, Ids
    from fleetform.providers.contract.stacks import StackRecords
    from fleetform.store.database import Transaction
    from fleetform.store.ledger import StoredLedger
    from fleetform.store.reads import Reads
    from fleetform.store.soundness import Keep, Upgraded

__all__ = ["LedgerFiles", "SqliteBackend"]

# A new ledger beside an old log would be damaged by it, so they move together.
_SUFFIXES = (".db", ".db-wal", ".db-shm")


@dataclass(frozen=True, slots=True)
class LedgerFiles:
    """The files of one environment's ledger, in the folder of its environment."""

    folder: Path

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.db"

    @property
    def manager_lock(self) -> Path:
        return self.folder / "manager.lock"

    @property
    def manager_request(self) -> Path:
        """Locked by each process that asks the manager to give `manager_lock` up."""
        return self.folder / "manager.request"


class SqliteBackend:
    """Implements `backend.LedgerBackend`; `environments` is the folder of their folders."""

    driver_variables: tuple[str, ...] = ()
    has_lease_in_ledger = False
    can_put_aside = True

    def __init__(self, environments: Path) -> None:
        self._environments = environments

    def environments(self) -> tuple[str, ...]:
        try:
            return tuple(sorted(one.name for one in self._environments.iterdir() if one.is_dir()))
        except FileNotFoundError:
            return ()

    def open_reader(self, environment_uid: str) -> Reads | None:
        path = self._files(environment_uid).ledger
        if not path.exists():
            return None
        from fleetform.store.reads import open_snapshot

        return open_snapshot(path, environment_uid)

    def open_writer(self, environment_uid: str, ids: Ids, clock: Clock) -> StoredLedger:
        from fleetform.store.opening import open_ledger

        return open_ledger(self._files(environment_uid).ledger, environment_uid, ids, clock)

    def open_to_keep(self, environment_uid: str) -> AbstractContextManager[Transaction]:
        from fleetform.store.history import open_to_keep

        return open_to_keep(self._files(environment_uid).ledger, environment_uid)

    def upgrade(self, environment_uid: str, keep: Keep) -> Upgraded | None:
        from fleetform.store.soundness import upgrade_file

        return upgrade_file(self._files(environment_uid).ledger, environment_uid, keep)

    def put_aside(self, environment_uid: str, folder: Path) -> None:
        ledger = self._files(environment_uid).ledger
        folder.mkdir(mode=0o700)
        for suffix in _SUFFIXES:
            file = ledger.with_suffix(suffix)
            if file.exists():
                file.replace(folder / file.name)

    def stacks(self, environment_uid: str) -> StackRecords | None:
        return None

    def holder(self, environment_uid: str) -> Holder | None:
        from fleetform.store.lock import who_holds

        return who_holds(self._files(environment_uid).manager_lock)

    def try_lease(
        self,
        environment_uid: str,
        ids: Ids,
        clock: Clock,
        *,
        who: str,
        command: str,
    ) -> ManagerLease | None:
        from fleetform.store.lock import try_lock

        path = self._files(environment_uid).manager_lock
        return try_lock(path, who=who, command=command, now_ms=clock.now_ms())

    def request_lease(
        self,
        environment_uid: str,
        clock: Clock,
        *,
        who: str,
        term_ms: int,
    ) -> AbstractContextManager[None]:
        from fleetform.store.lock import asking

        return asking(self._files(environment_uid).manager_request)

    def is_lease_requested(self, environment_uid: str) -> bool:
        from fleetform.store.lock import is_asked

        return is_asked(self._files(environment_uid).manager_request)

    def break_lease(self, environment_uid: str, clock: Clock, *, who: str) -> Holder | None:
        raise AssertionError("a lock lasts as long as its holder's process")

    def keep_reserve(self, environment_uid: str) -> None:
        from fleetform.store.filesystem import keep

        keep(self._files(environment_uid).ledger)

    def is_reserve_needed(self, environment_uid: str) -> bool:
        from fleetform.store.filesystem import is_needed

        return is_needed(self._files(environment_uid).ledger)

    def give_up_reserve(self, environment_uid: str) -> None:
        from fleetform.store.filesystem import give_up

        give_up(self._files(environment_uid).ledger)

    def _files(self, environment_uid: str) -> LedgerFiles:
        return LedgerFiles(self._environments / environment_uid)
