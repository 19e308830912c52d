"""Ledgers in a PostgreSQL database: a schema for each environment, and its lease a row in it."""

from __future__ import annotations

import atexit
from typing import TYPE_CHECKING

from fleetform.store.errors import MissingLedgerError
from fleetform.store.postgres.address import DRIVER_VARIABLES
from fleetform.store.postgres.lease import LeaseLook, asking_for_lease, break_lease, try_lease
from fleetform.store.postgres.opening import (
    environments_in,
    open_postgres,
    open_postgres_snapshot,
    open_postgres_to_keep,
    upgrade_postgres,
)
from fleetform.store.postgres.stacks import PostgresStacks

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from fleetform.model.leadership import Holder, ManagerLease
    from fleetform.model.ports import Clock, Ids
    from fleetform.providers.contract.stacks import StackRecords
    from fleetform.store.database import Transaction
    from fleetform.store.ledger import StoredLedger
    from fleetform.store.postgres.address import Address
    from fleetform.store.reads import Reads
    from fleetform.store.soundness import Keep, Upgraded

__all__ = ["PostgresBackend", "close_looks"]

_looks: dict[tuple[str, str], LeaseLook] = {}
"""One connection an environment: a command that follows a manager asks many times a second."""

_LOOKS_MAX = 4
"""A list of the locks of hundreds of environments must not keep a connection for each."""


class PostgresBackend:
    """Implements `backend.LedgerBackend`."""

    driver_variables: tuple[str, ...] = DRIVER_VARIABLES
    has_lease_in_ledger = True
    can_put_aside = False

    def __init__(self, address: Address) -> None:
        self.address = address

    def environments(self) -> tuple[str, ...]:
        return environments_in(self.address)

    def open_reader(self, environment_uid: str) -> Reads | None:
        try:
            return open_postgres_snapshot(self.address, environment_uid)
        except MissingLedgerError:
            return None

    def open_writer(self, environment_uid: str, ids: Ids, clock: Clock) -> StoredLedger:
        return open_postgres(self.address, environment_uid, ids, clock)

    def open_to_keep(self, environment_uid: str) -> AbstractContextManager[Transaction]:
        return open_postgres_to_keep(self.address, environment_uid)

    def upgrade(self, environment_uid: str, keep: Keep) -> Upgraded | None:
        return upgrade_postgres(self.address, environment_uid, keep)

    def put_aside(self, environment_uid: str, folder: Path) -> None:
        raise AssertionError("only its owner moves what a database has")

    def stacks(self, environment_uid: str) -> StackRecords | None:
        return PostgresStacks(self.address, environment_uid)

    def holder(self, environment_uid: str) -> Holder | None:
        return self._look(environment_uid).holder()

    def try_lease(
        self, environment_uid: str, ids: Ids, clock: Clock, *, who: str, command: str
    ) -> ManagerLease | None:
        return try_lease(self.address, environment_uid, ids, clock, who=who, command=command)

    def request_lease(
        self, environment_uid: str, clock: Clock, *, who: str, term_ms: int
    ) -> AbstractContextManager[None]:
        return asking_for_lease(self.address, environment_uid, clock, who=who, term_ms=term_ms)

    def is_lease_requested(self, environment_uid: str) -> bool:
        return self._look(environment_uid).is_asked()

    def break_lease(self, environment_uid: str, clock: Clock, *, who: str) -> Holder | None:
        return break_lease(self.address, environment_uid, clock, who=who)

    def keep_reserve(self, environment_uid: str) -> None:
        pass

    def is_reserve_needed(self, environment_uid: str) -> bool:
        return False

    def give_up_reserve(self, environment_uid: str) -> None:
        pass

    def _look(self, environment_uid: str) -> LeaseLook:
        key = (self.address.url, environment_uid)
        if (known := _looks.get(key)) is not None:
            return known
        look = LeaseLook(self.address, environment_uid)
        if not look.exists:
            # It may be made at any moment.
            look.close()
            return look
        while len(_looks) >= _LOOKS_MAX:
            _looks.pop(next(iter(_looks))).close()
        _looks[key] = look
        return look


@atexit.register
def close_looks() -> None:
    """Close the connections that are kept to see holders."""
    while _looks:
        _looks.popitem()[1].close()
