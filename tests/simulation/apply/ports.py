"""
What the simulation of apply is given by `app`: the ledger's disk, and what decides above it.

The room knows no driver; the real statements, the real schema, and how the product itself looks at
the world, rebuilds a ledger and finds one outgrown come in through these.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Protocol

from fleetform.model.instance import Instance
from fleetform.model.leadership import Holder
from fleetform.model.live import Live
from fleetform.model.override import Override
from fleetform.model.ports import Gate, Ids, Ledger
from fleetform.providers.contract.hosts import HostProvider
from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.desired import Desired

__all__ = [
    "FILLED",
    "Claimed",
    "Disk",
    "Look",
    "MakeDisk",
    "Manager",
    "OutgrownBy",
    "Rebuild",
    "TakenOver",
    "Torn",
    "Writer",
]


FILLED = (("INSERT",), ("INSERT", "UPDATE"), ("COMMIT",))
"""
What a full disk refuses: another row, any write, or to make durable what was written all the same.
"""


class Torn(BaseException):
    """The process died before or inside of a transaction; not an error that anybody may catch."""


class Writer(Protocol):
    """Somebody who writes the ledger, and may die of it; `call` names the ledger's call."""

    def begins(self, call: str) -> int:
        """
        Return after how many statements of this transaction the writer dies; 0: it does not.

        Raises:
            Torn: It dies before, or is dead.
        """

    def has_committed(self, call: str) -> None:
        """Take note that it is written; who dies now hears of nothing."""


class Disk(Protocol):
    """
    Where the ledger lies. All processes of a simulation use its one connection in turn.

    What was committed is on it: a commit that returned survives a power cut.
    """

    @property
    def ledger(self) -> Ledger:
        """For whoever reads, and is not under test."""

    def open(self, writer: Writer) -> Ledger:
        """Give a process the ledger; each of its transactions asks it whether it dies."""

    def ask(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Read what is committed, past everything under test."""

    def outline(self) -> Live:
        """Read what is live without its resources: whose it is, and its instances."""

    def instances(self, fleet: str) -> Sequence[Instance]:
        """Read a fleet's instances that are not terminated."""

    def take_lease(self, writer: Writer, who: str, *, term_ms: int, now_ms: int) -> int | None:
        """Take the environment's lease as one of `writer`'s transactions; returns its fence."""

    def renew_lease(self, fence: int, *, term_ms: int, at_ms: int) -> bool:
        """Prolong it, or have done so at that moment; False where somebody else has taken it."""

    def release_lease(self, fence: int) -> None:
        """End it, unless somebody else has taken it."""

    def lease_left_ms(self, now_ms: int) -> int:
        """How long it holds; 0 or less where nobody holds it."""

    def image(self) -> bytes:
        """Copy all that is committed."""

    def load(self, image: bytes) -> None:
        """Put a copy in the place of what is there, as after a power cut or a restore."""

    def fill(self, refuses: tuple[str, ...]) -> None:
        """Leave no room for statements that begin so, one of `FILLED`, until `drain`."""

    def drain(self) -> None: ...


MakeDisk = Callable[[str, Ids], Disk]
"""Makes an empty ledger for an environment."""

OutgrownBy = Callable[[Sequence[InstanceSeen], Live], str]
"""Says which hosts know more than this ledger, or nothing."""


class Manager(Protocol):
    """The part of `model.leadership.ManagerLease` that a rebuild looks at."""

    @property
    def holder(self) -> Holder: ...


TakenOver = Callable[[Iterable[Override], int], Override | None]
"""Says which of the overrides has `serve` rest at this moment, Unix milliseconds."""

Look = Callable[[Ledger, HostProvider, Gate], Awaitable[Live]]
"""Asks the world, and reads the ledger with what has drifted."""

Claimed = Callable[[HostProvider, Desired, Live], Live]
"""Adds to what is live who owns what new volumes would take, and leaves out what is not there."""

Rebuild = Callable[[Ledger, HostProvider, Desired, Manager], Awaitable[bool]]
"""Puts a lost or older ledger together again from its hosts and the tree; False: not this time."""
