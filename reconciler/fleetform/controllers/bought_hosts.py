"""
Has clouds create hosts, gives each of them a host key of its own, and learns which of them no longer exist.

Before a host is created its cloud is asked what the environment has there: instances that the ledger never had are a sign that it is
an older one, and would be bought a second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from fleetform.model.existence import CloudPlace, ended_text, place_of
from fleetform.model.instance import Instance, request_of
from fleetform.providers.contract.errors import PermanentError, ProviderError
from fleetform.providers.contract.hosts import HostCreator, HostProvider

if TYPE_CHECKING:
    from fleetform.controllers.host_notices import HostNotices
    from fleetform.model.ports import Clock, Gate, Ledger
    from fleetform.providers.contract.observed import InstanceSeen

LIST_MS = 20_000
"""For how long the list of an account and region is used: a hundred silent hosts ask for one."""

_NAMED_MAX = 5


class BoughtHosts:
    """Writes what clouds answer into the ledger, under the fence of the controller."""

    def __init__(
        self,
        provider: HostProvider,
        *,
        environment_uid: str,
        ledger: Ledger,
        gate: Gate,
        clock: Clock,
        notices: HostNotices,
        fence: int,
    ) -> None:
        self._provider = provider
        self._environment_uid = environment_uid
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._notices = notices
        self._fence = fence
        self._lists: dict[CloudPlace, tuple[int, Sequence[InstanceSeen]]] = {}
        self._locks: dict[CloudPlace, asyncio.Lock] = {}

    async def create(self, instance: Instance) -> None:
        """
        Have the cloud create an instance, and record its address and first host key.

        Raises:
            ProviderError: It does not exist; the message says why.
        """
        await self._refuse_unknown(instance)
        created = await self._creator().create(
            request_of(instance), lambda said: self._notices.creating(instance, said)
        )
        await self._gate(
            lambda: self._ledger.note_created(
                instance.uid, created, fence=self._fence, now_ms=self._clock.now_ms()
            )
        )

    async def prepare(
        self, instance: Instance, row_of: Callable[[str], Awaitable[Instance | None]]
    ) -> Instance:
        """Bring a new instance to where its agent can be installed, and return its row as it is then."""
        if not instance.is_created:
            await self.create(instance)
            instance = await row_of(instance.uid) or instance
        if instance.is_joining:
            await self._secure(instance)
            instance = await row_of(instance.uid) or instance
        return instance

    async def note_if_ended(self, instance: Instance) -> bool:
        """
        Tell whether it is proven that a silent instance no longer exists, and record that.

        A cloud that cannot be asked proves nothing.
        """
        if not instance.is_created:
            return False
        try:
            listed = await self._listed(instance)
        except ProviderError:
            return False
        why = ended_text(instance, listed, now_ms=self._clock.now_ms())
        if why:
            await self._gate(
                lambda: self._ledger.note_ended(
                    instance.uid, why, fence=self._fence, now_ms=self._clock.now_ms()
                )
            )
        return bool(why)

    async def _refuse_unknown(self, instance: Instance) -> None:
        """Make sure that the ledger knows, or has known, each instance of the fleet that its cloud lists."""
        unknown = await self._unknown(instance)
        if unknown:
            # They may have been terminated since the list was read.
            self._lists.pop(place_of(instance.provider, instance.endpoint), None)
            unknown = await self._unknown(instance)
        if unknown:
            more = f" and {len(unknown) - _NAMED_MAX} more" if len(unknown) > _NAMED_MAX else ""
            raise PermanentError(
                f"fleet {instance.fleet} has instances that the ledger does not know:"
                f" {', '.join(unknown[:_NAMED_MAX])}{more}",
                advice="if the ledger is an older copy, put the newest one back; else end them with"
                " `fleetform fleet terminate`",
            )

    async def _unknown(self, instance: Instance) -> list[str]:
        there = {
            one.uid: str(one.endpoint["id"])
            for one in await self._listed(instance)
            if one.fleet == instance.fleet and one.alive and not one.is_ending
        }
        known = await self._gate(lambda: self._ledger.read_known_instances(there))
        return sorted(there[uid] for uid in there if uid not in known)

    async def _listed(self, instance: Instance) -> Sequence[InstanceSeen]:
        """Return the list of the account and region of an instance, which may be some seconds old."""
        place = place_of(instance.provider, instance.endpoint)
        async with self._locks.setdefault(place, asyncio.Lock()):
            now_ms = self._clock.boot_ms()
            read_ms, listed = self._lists.get(place, (now_ms - LIST_MS, ()))
            if now_ms - read_ms >= LIST_MS:
                listed = await self._creator().listed(self._environment_uid, request_of(instance))
                self._lists[place] = (self._clock.boot_ms(), listed)
            return listed

    async def _secure(self, instance: Instance) -> None:
        """Have a new host use a key of its own, which is pinned in the ledger."""

        async def pin(keys: str) -> None:
            await self._gate(
                lambda: self._ledger.pin_host_key(instance.uid, keys, fence=self._fence)
            )

        await self._creator().secure(request_of(instance), pin)

    def _creator(self) -> HostCreator:
        assert isinstance(self._provider, HostCreator), "the provider creates no hosts"
        return self._provider
