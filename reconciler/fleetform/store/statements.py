"""
What the rooms of a ledger ask of a database, whichever it is.

Statements are written once, in the SQL that SQLite and PostgreSQL both understand; what they do
not share is translated for PostgreSQL in one place, `postgres/connection`.

A pattern of LIKE stands in its statement: SQLite plans a statement with a bound one again each time
that it runs, which takes longer than all else that it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager

# ruff: noqa: S608 -- statements are put together from constants; values are bound.
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fleetform.store.database import Transaction
__all__ = [
    "CREATE_META",
    "LEASE",
    "NEXT_FENCE",
    "RAISE",
    "RELEASE",
    "REQUEST",
    "WITHDRAW",
    "LeaseStatements",
    "Rows",
    "Statements",
    "Storage",
    "take_lease",
]


class Rows(Protocol):
    """
    What a statement gave: tuples, once.

    `rowcount`: how many rows it inserted, changed or deleted.
    """

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Statements(Protocol):
    """Carries out statements inside a transaction; `?` or `?1` stands for a value."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Rows: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Carry out one statement for many rows, in few exchanges with the database."""

    @property
    def total_changes(self) -> int:
        """Grows with each row that is inserted, changed or deleted."""


class Storage(Protocol):
    """
    One database with a ledger in it; see `Database` for what its transactions promise.

    Attributes:
        poll_seconds: How often another's commit is worth looking for with `serial`.
    """

    poll_seconds: float

    def write(
        self, *, fence: int | None = None, takes_fence: bool = False
    ) -> AbstractContextManager[Transaction]:
        """`takes_fence`: the transaction will call `raise_fence`."""

    def read(self) -> AbstractContextManager[Statements]: ...
    def serial(self) -> int:
        """Return a number that changes when another connection commits, and not by this one."""

    def glance(self) -> int | None:
        """Return the serial if that takes microseconds; None: ask for it."""

    def raise_fence(self, transaction: Transaction, who: str) -> int:
        """Take the next fence inside a transaction that said so; returns it."""

    def renumber(self, transaction: Transaction) -> None:
        """After rows were written with numbers of their own: go on above the highest."""

    def flaws(self) -> tuple[str, ...]:
        """Say what is wrong with the database itself, a sentence each."""

    def copy(self) -> Storage:
        """Copy all that is committed into memory, to try something out."""

    def close(self) -> None: ...


CREATE_META = (
    "INSERT INTO meta (id, environment_uid, ledger_id, status, created_at_ms)"
    " VALUES (1, ?, ?, ?, ?)"
)
"""The first row of a new ledger, which says whose it is."""

NEXT_FENCE = "UPDATE meta SET fence = fence + 1, manager = ? RETURNING fence"

# A lease's statements: who holds it, taking, prolonging and giving it back.
# They are the same wherever the row lies; only who tells the time differs. PostgreSQL does so by its
# own clock, and a simulation by the one that it moves.


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
        """Changes no row that another process has taken since."""
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
