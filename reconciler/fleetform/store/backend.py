"""
What a place of ledgers can do: the one interface of SQLite files and of a PostgreSQL database.

`store.sqlite` and `store.postgres.backend` implement it, and `app.paths` chooses one. A
caller never asks which it has: what differs between both is a method or an attribute here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

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

__all__ = ["LedgerBackend"]


class LedgerBackend(Protocol):
    """
    Where the ledgers of environments are. Each method is about the environment with a uid.

    All raise `LedgerError` by kind, see `errors`: nothing was changed then.

    Attributes:
        driver_variables: Names of the environment variables that its driver reads.
        has_lease_in_ledger: The lease is a row: it can be ended although its holder lives, and only
            a ledger of this release has it. Otherwise it is a lock that the kernel frees when the
            holder's process ends, whatever the ledger is.
        can_put_aside: A ledger that cannot be read can be moved away, and a new one be created.
    """

    driver_variables: tuple[str, ...]
    has_lease_in_ledger: bool
    can_put_aside: bool

    def environments(self) -> tuple[str, ...]:
        """Return the uids of the environments that this user may read, in order."""
        ...

    # -- the ledger -------------------------------------------------------------------------------

    def open_reader(self, environment_uid: str) -> Reads | None:
        """Open the ledger for reading, which is also how it is backed up; None where there is none."""
        ...

    def open_writer(self, environment_uid: str, ids: Ids, clock: Clock) -> StoredLedger:
        """Open the ledger for writing, which also restores it; create it where there is none."""
        ...

    def open_to_keep(self, environment_uid: str) -> AbstractContextManager[Transaction]:
        """Run one write transaction that gives up soon, on an existing ledger of this release."""
        ...

    def upgrade(self, environment_uid: str, keep: Keep) -> Upgraded | None:
        """
        Migrate the ledger of an earlier release after `keep` has backed it up; None: it is current.

        Unless `has_lease_in_ledger`, the caller has the lease.
        """
        ...

    def put_aside(self, environment_uid: str, folder: Path) -> None:
        """Move a ledger that cannot be read into a new folder; only where `can_put_aside`."""
        ...

    def stacks(self, environment_uid: str) -> StackRecords | None:
        """Return what is kept of the stacks of clouds; None: providers keep it in files of this machine."""
        ...

    # -- the manager lease ------------------------------------------------------------------------

    def holder(self, environment_uid: str) -> Holder | None:
        """Return the holder of the lease, or None when no process has it."""
        ...

    def try_lease(
        self, environment_uid: str, ids: Ids, clock: Clock, *, who: str, command: str
    ) -> ManagerLease | None:
        """Take the lease, or return None when another process holds it."""
        ...

    def request_lease(
        self, environment_uid: str, clock: Clock, *, who: str, term_ms: int
    ) -> AbstractContextManager[None]:
        """Ask the holder to give the lease up, as long as this lasts and about `term_ms` at most."""
        ...

    def is_lease_requested(self, environment_uid: str) -> bool:
        """Tell whether any process asks the holder to give the lease up."""
        ...

    def break_lease(self, environment_uid: str, clock: Clock, *, who: str) -> Holder | None:
        """End the lease at once, and return its holder; only where `has_lease_in_ledger`."""
        ...

    # -- the reserve for an emergency on a full disk ----------------------------------------------

    def keep_reserve(self, environment_uid: str) -> None:
        """Keep some disk space next to the ledger; a database server has its disk for itself."""
        ...

    def is_reserve_needed(self, environment_uid: str) -> bool:
        """Tell whether there is a reserve, and nothing else is free."""
        ...

    def give_up_reserve(self, environment_uid: str) -> None:
        """Leave the room of the reserve to the ledger."""
        ...
