"""
A lease's statements: who holds it, taking, prolonging and giving it back.

They are the same wherever the row lies; only who tells the time differs. PostgreSQL does so by its
own clock, and a simulation by the one that it moves.
"""

# ruff: noqa: S608 -- statements are put together from constants; values are bound.

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fleetform.store.statements import Storage

__all__ = ["LEASE", "RAISE", "RELEASE", "REQUEST", "WITHDRAW", "LeaseStatements", "take_lease"]

LEASE = "manager"
"""The row's name; others are for what will be driven apart, such as shards of hosts."""

RAISE = "UPDATE leases SET fence = ? WHERE name = ?"
"""Part of raising the ledger's fence, so that both are always the same."""

RELEASE = "UPDATE leases SET until_ms = 0, holder = '' WHERE name = ? AND fence = ?"


REQUEST = "request"
"""The row of a process that asks the manager to give its lease up; it is over when its term is."""

WITHDRAW = "UPDATE leases SET until_ms = 0, holder = '' WHERE name = ? AND holder = ?"
"""Takes a request back, unless another one has taken its place."""


@dataclass(frozen=True, slots=True)
class LeaseStatements:
    """`now` is an expression of Unix milliseconds, by whichever clock counts."""

    now: str

    @property
    def look(self) -> str:
        """Holder, fence, and how many milliseconds it holds."""
        return f"SELECT holder, fence, until_ms - {self.now} FROM leases WHERE name = ?"

    @property
    def take(self) -> str:
        return f"UPDATE leases SET holder = ?, until_ms = {self.now} + ? WHERE name = ?"

    @property
    def renew(self) -> str:
        """Changes no row where somebody else has taken it since."""
        return f"UPDATE leases SET until_ms = {self.now} + ? WHERE name = ? AND fence = ?"

    @property
    def request(self) -> str:
        return (
            f"INSERT INTO leases (name, holder, until_ms) VALUES (?, ?, {self.now} + ?)"
            " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms"
        )


def take_lease(
    storage: Storage, said: LeaseStatements, holder: str, *, who: str, term_ms: int, now_ms: int
) -> int | None:
    """
    Take the lease where its term is over, with the next fence, which is returned; else None.

    Args:
        storage: The ledger that it is about.
        said: The statements.
        holder: What is written down of whoever takes it.
        who: For the events.
        term_ms: How long it holds without being renewed.
        now_ms: For the events.
    """
    with storage.write(takes_fence=True) as transaction:
        row = transaction.one(said.look, (LEASE,))
        assert row is not None
        if row[2] > 0:
            return None
        fence = storage.raise_fence(transaction, who)
        transaction.execute(said.take, (holder, term_ms, LEASE))
        transaction.log("manager.changed", now_ms, f"{who} now drives the runs")
        return fence
