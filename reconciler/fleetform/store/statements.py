"""
What the rooms of a ledger ask of a database, whichever it is.

Statements are written once, in the SQL that SQLite and PostgreSQL both understand; what they do
not share is translated for PostgreSQL in one place, `postgres/dialect`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fleetform.store.database import Transaction

__all__ = ["Rows", "Statements", "Storage"]


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
