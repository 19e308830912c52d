"""Has clouds create hosts, and gives each of them a host key of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.model.instance import Instance, request_of
from fleetform.providers.contract.hosts import HostCreator, HostProvider

if TYPE_CHECKING:
    from fleetform.controllers.host_notices import HostNotices
    from fleetform.model.ports import Clock, Gate, Ledger


class BoughtHosts:
    """Writes what clouds answer into the ledger, under the fence of the controller."""

    def __init__(
        self,
        provider: HostProvider,
        *,
        ledger: Ledger,
        gate: Gate,
        clock: Clock,
        notices: HostNotices,
        fence: int,
    ) -> None:
        self._provider = provider
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._notices = notices
        self._fence = fence

    async def create(self, instance: Instance) -> None:
        """Have the cloud create an instance, and record its address and first host key."""
        created = await self._creator().create(
            request_of(instance), lambda said: self._notices.creating(instance, said)
        )
        await self._gate(
            lambda: self._ledger.note_created(
                instance.uid, created, fence=self._fence, now_ms=self._clock.now_ms()
            )
        )

    async def secure(self, instance: Instance) -> None:
        """Have a new host use a key of its own, which is pinned in the ledger."""

        async def pin(keys: str) -> None:
            await self._gate(
                lambda: self._ledger.pin_host_key(instance.uid, keys, fence=self._fence)
            )

        await self._creator().secure(request_of(instance), pin)

    def _creator(self) -> HostCreator:
        assert isinstance(self._provider, HostCreator), "the provider creates no hosts"
        return self._provider
