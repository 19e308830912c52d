"""What the ledger records of instances and disks of clouds: a part of `ports.Ledger`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from fleetform.model.offers import NoOffer, Refusal, RefusedOffer, TriedOffer
    from fleetform.model.scaling import IdleHosts, ScaleRequest
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

    def note_attachment(self, volume_uid: str, instance_uid: str, *, fence: int) -> None:
        """Record the instance that the disk of a volume is about to be attached to; empty: none has it."""

    def take_offers(
        self, uids: Sequence[str], *, fence: int, now_ms: int
    ) -> Mapping[str, Mapping[str, Any] | NoOffer]:
        """
        Record that a cloud is asked for instances, and return by which endpoint each, or why it is not, by uid.

        Instances that leave are left out.
        """

    def refuse_offers(
        self, refusals: Sequence[Refusal], *, fence: int, now_ms: int
    ) -> tuple[RefusedOffer, ...]:
        """
        Record what a cloud has refused, and return the offers that were not recorded as refused yet, with those that follow them.

        One that exists keeps its offer until it is recorded as refused without existing: then it was released, and has
        another uid, because a uid is bought once.
        """

    def retry_offers(self, fleet: str, *, who: str, now_ms: int) -> tuple[TriedOffer, ...]:
        """
        Have a fleet ask again for all its offers, as a person asks, and return those that it would not ask for now.

        Its hosts for which no offer was left are asked for again, for as long as the fleet retries.
        """

    def pin_host_key(self, instance_uid: str, keys: str, *, fence: int) -> None:
        """Record the keys that the host of an instance may have, one a line."""

    def commit_scaling(
        self, requests: Sequence[ScaleRequest], idle: IdleHosts, *, fence: int, now_ms: int
    ) -> None:
        """
        Give fleets the hosts that were asked for, within their limits, and let idle ones leave.

        The new hosts of one request are one batch. Nothing happens to a fleet with an open step, and to a
        host that has got a job meanwhile.
        """
