"""What the ledger records of instances of clouds: a part of `ports.Ledger`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fleetform.providers.contract.hosts import CreatedHost

__all__ = ["CloudLedger"]


class CloudLedger(Protocol):
    def note_created(
        self, instance_uid: str, created: CreatedHost, *, fence: int, now_ms: int
    ) -> None:
        """Record that a cloud has created an instance, and how it is reached."""

    def note_ended(self, instance_uid: str, why: str, *, fence: int, now_ms: int) -> None:
        """
        Record that an instance of a cloud no longer exists, with the sentence that proves it: its jobs are lost.

        The row keeps its place until a plan gives that to another instance.
        """

    def read_known_instances(self, uids: Iterable[str]) -> frozenset[str]:
        """Tell which of these are uids of instances that this ledger has or had."""
