"""
Who manages an environment, and for how long that is certain.

One process at a time causes effects in an environment. On SQLite the kernel's file lock says
which, and frees it when the process dies; on PostgreSQL a lease does, which ends by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

__all__ = ["BACKGROUND", "Holder", "ManagerLease"]

BACKGROUND = "background controller"
"""The `command` of the process that a detached or interrupted apply leaves behind."""


@dataclass(frozen=True, slots=True)
class Holder:
    """
    The manager of an environment. `command` is `apply`, `serve` or the like; `since_ms` Unix ms.

    Attributes:
        pid: 0 for somebody who has not written it down yet.
        host: The machine on which `pid` counts.
        fence: Of a lease; 0 where a file lock is held, whose fence stands in the ledger.
        left_ms: How long the lease holds if it is not renewed, by the database's clock; None
            for a file lock, which holds until its process ends.
    """

    pid: int
    who: str
    command: str
    since_ms: int
    host: str
    fence: int = 0
    left_ms: int | None = None


class ManagerLease(Protocol):
    """
    The right to manage one environment, held until `release`, or until it is lost.

    Raising the ledger's fence (`Ledger.take_fence`) is its holder's first act.
    """

    @property
    def holder(self) -> Holder: ...

    def require(self) -> None:
        """
        Make sure that it is still ours; asked right before each effect, and costs microseconds.

        Raises:
            FenceLost: Somebody took it, or it could not be renewed in time.
            LedgerUnusable: What says that it is ours is gone.
        """

    def renew(self) -> None:
        """
        Prolong it; called from a thread of its own about each `RENEW_SECONDS`.

        Raises:
            FenceLost: Somebody else has taken it.
            LedgerUnavailable: It cannot be said whether it is prolonged; try again.
        """

    def release(self) -> None:
        """Give it up; a second time does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...
