"""
The lease of an environment whose ledger is on PostgreSQL: taken, renewed, lost, broken.

A row says who holds it, under which fence, and until when by the database's own clock; no other
machine's clock is compared with it. Its holder counts half a term from the moment at which it
began to ask for its last renewal, by a clock that counts suspend, and causes nothing after that:
long before anybody else may begin. What is on its way by then is refused by its fence, by the
ledger and by every agent.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self

from fleetform.model.leadership import Holder
from fleetform.model.ports import Clock, Ids
from fleetform.model.refusals import FenceLost
from fleetform.store.errors import LedgerError
from fleetform.store.postgres.address import Address
from fleetform.store.postgres.connection import Connection
from fleetform.store.postgres.database import PostgresDatabase
from fleetform.store.postgres.opening import (
    connect,
    ensure_ledger,
    require_current,
    require_readable,
)
from fleetform.store.statements import (
    LEASE,
    RELEASE,
    REQUEST,
    WITHDRAW,
    LeaseStatements,
    take_lease,
)

__all__ = [
    "RENEW_SECONDS",
    "TERM_SECONDS",
    "Lease",
    "LeaseLook",
    "asking_for_lease",
    "break_lease",
    "try_lease",
]

TERM_SECONDS = 10.0
"""How long the lease holds without being renewed: what a successor waits for after a power cut."""

RENEW_SECONDS = 3.0
"""Three renewals may go wrong in a term."""

_RETRY_SECONDS = 0.5
"""Pause after a renewal that failed: there are some four seconds for it."""

_TERM_MS = int(TERM_SECONDS * 1000)
_HALF_TERM_MS = _TERM_MS // 2

# `now()` stands still in a transaction.
_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

_SAID = LeaseStatements(_NOW)


class Lease:
    """
    A lease that this process holds; a thread renews it. Implements `model.leadership.ManagerLease`.

    The thread goes on while the loop computes: that a process is busy is no reason to lose it.
    """

    def __init__(
        self, database: PostgresDatabase, holder: Holder, clock: Clock, *, began_ms: int
    ) -> None:
        self.holder = holder
        self._database = database
        self._clock = clock
        self._began_ms = began_ms
        self._lost = ""
        self._released = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    def require(self) -> None:
        if self._lost:
            raise FenceLost(self._lost)
        if self._released.is_set():
            raise FenceLost("the lease was released")
        silent_ms = self._clock.boot_ms() - self._began_ms
        if silent_ms >= _HALF_TERM_MS:
            raise FenceLost(f"the lease was not renewed for {silent_ms / 1000:.1f} s")

    def renew(self) -> None:
        began_ms = self._clock.boot_ms()
        renewed = self._database.alone(_SAID.renew, (_TERM_MS, LEASE, self.holder.fence))
        if not renewed.rowcount:
            self._lost = "another controller has taken the lease"
            raise FenceLost(self._lost)
        self._began_ms = began_ms

    def release(self) -> None:
        if self._released.is_set():
            return
        self._released.set()
        # It renews for 3 s at most; afterwards the connection is ours.
        self._thread.join(RENEW_SECONDS * 2)
        # Not given back, it ends by itself.
        with suppress(LedgerError):
            self._database.alone(RELEASE, (LEASE, self.holder.fence))
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _keep(self) -> None:
        pause_seconds = RENEW_SECONDS
        while not self._released.wait(pause_seconds):
            try:
                self.renew()
            except FenceLost:
                return
            except LedgerError:
                # `require` counts how long this has been so.
                pause_seconds = _RETRY_SECONDS
            else:
                pause_seconds = RENEW_SECONDS


def try_lease(
    address: Address, environment_uid: str, ids: Ids, clock: Clock, *, who: str, command: str
) -> Lease | None:
    """
    Take the environment's lease, or return None when another process holds it.

    A paused holder may stand in a transaction: its server ends that before the lease does.

    Raises:
        LedgerError: The ledger cannot be used.
    """
    with LeaseLook(address, environment_uid) as look:
        # Most who ask find a holder, and are not to hold up its transactions by asking.
        if look.exists and look.holder() is not None:
            return None
    began_ms, now_ms = clock.boot_ms(), clock.now_ms()
    holder = Holder(os.getpid(), who, command, now_ms, socket.gethostname())
    check = partial(ensure_ledger, ids=ids, clock=clock)
    with closing(connect(address, environment_uid, check)) as database:
        fence = take_lease(
            database, _SAID, _write(holder), who=who, term_ms=_TERM_MS, now_ms=now_ms
        )
    if fence is None:
        return None
    kept = connect(address, environment_uid, require_current, wait_seconds=RENEW_SECONDS)
    return Lease(kept, replace(holder, fence=fence), clock, began_ms=began_ms)


def break_lease(address: Address, environment_uid: str, clock: Clock, *, who: str) -> Holder | None:
    """
    End the lease of any process at once; returns its holder.

    From here on nothing that the former holder writes is taken; it stops by itself, half a term
    after it last renewed at the latest.
    """
    with (
        closing(connect(address, environment_uid, require_current)) as database,
        database.write(takes_fence=True) as transaction,
    ):
        found = _read(transaction.one(_SAID.look, (LEASE,)))
        if found is None:
            return None
        database.raise_fence(transaction, who)
        transaction.execute("UPDATE leases SET holder = '', until_ms = 0 WHERE name = ?", (LEASE,))
        transaction.log(
            "manager.broken",
            clock.now_ms(),
            f"{who} took the environment from {found.command} of {found.who}"
            f" (pid {found.pid} on {found.host})",
        )
        return found


@contextmanager
def asking_for_lease(
    address: Address, environment_uid: str, clock: Clock, *, who: str, term_ms: int
) -> Iterator[None]:
    """
    Ask the lease's holder to give it up, for as long as this lasts, and `term_ms` at most.

    The holder may be on another machine, so the request is a row. One whose process has died is
    over with its term.
    """
    text = _write(Holder(os.getpid(), who, "", clock.now_ms(), socket.gethostname()))
    with closing(connect(address, environment_uid, require_current)) as database:
        database.alone(_SAID.request, (REQUEST, text, term_ms))
        try:
            yield
        finally:
            with suppress(LedgerError):
                database.alone(WITHDRAW, (REQUEST, text))


class LeaseLook:
    """
    Reads the manager of an environment, repeatedly on one connection.

    `exists`: whether there is a ledger; where there is none, nobody holds anything.
    """

    def __init__(self, address: Address, environment_uid: str) -> None:
        self.exists = False
        self._database = connect(address, environment_uid, self._look, read_only=True)

    def _look(self, connection: Connection, schema: str, _environment_uid: str) -> None:
        row = connection.execute(
            "SELECT 1 FROM pg_catalog.pg_tables WHERE schemaname = ? AND tablename = 'leases'",
            (schema,),
        ).fetchone()
        self.exists = row is not None
        if self.exists:
            require_readable(connection, schema)

    def holder(self) -> Holder | None:
        """
        Raises:
            LedgerError: The server does not answer.
        """
        if not self.exists:
            return None
        return _read(self._database.alone(_SAID.look, (LEASE,)).fetchone())

    def is_asked(self) -> bool:
        """
        Tell whether any process asks for the lease.

        Raises:
            LedgerError: The server does not answer.
        """
        if not self.exists:
            return False
        return _read(self._database.alone(_SAID.look, (REQUEST,)).fetchone()) is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()


def _write(holder: Holder) -> str:
    said = {"pid": holder.pid, "who": holder.who, "command": holder.command,
            "since_ms": holder.since_ms, "host": holder.host}  # fmt: skip
    return json.dumps(said)


def _read(row: Any) -> Holder | None:
    if row is None:
        return None
    text, fence, left_ms = row
    if not text or left_ms <= 0:
        return None
    return Holder(**json.loads(text), fence=fence, left_ms=left_ms)
