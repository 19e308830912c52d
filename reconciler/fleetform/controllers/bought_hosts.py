"""
Has clouds create hosts, gives each of them a host key of its own, and learns which of them no longer exist.

Before a host is created its cloud is asked what the environment has there: instances that the ledger never had are a sign that it is
an older one, and would be bought a second time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from fleetform.controllers.batched_calls import BatchedCalls
from fleetform.controllers.host_notices import without_name
from fleetform.lifecycle.offers import must_be_released
from fleetform.model.existence import (
    UNKNOWN_CURE,
    CloudPlace,
    ended_text,
    instances_of,
    place_of,
    unknown_instances_text,
)
from fleetform.model.instance import Instance, request_of
from fleetform.model.offers import NoOffer, Refusal, RefusedOffer, terms_of
from fleetform.providers.contract.errors import (
    AnswerUnknown,
    HostGone,
    NoCapacity,
    OfferRefused,
    PermanentError,
    ProviderError,
    TemporaryError,
)
from fleetform.providers.contract.hosts import HostCreator, HostProvider
from fleetform.views.offers import apply_again_text, no_offer_left

if TYPE_CHECKING:
    from fleetform.controllers.host_notices import HostNotices
    from fleetform.controllers.task_group import TaskGroup
    from fleetform.model.ports import Clock, Gate, Ledger
    from fleetform.providers.contract.observed import InstanceSeen

LIST_MS = 20_000
"""For how long the list of an account and region is used: a hundred silent hosts ask for one."""

FAILED_MS = 60_000
"""For how long a new controller does not ask for a host whose creation had failed before: the process before it may just have done so."""

_LOOK_SECONDS = 1.0
"""Between two looks at whether an apply has created such a host meanwhile."""


class _Replaced(TemporaryError):
    """The place of an instance has another one by now, which is asked for in its stead."""


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
        task_group: TaskGroup,
        fence: int,
        row_of: Callable[[str], Awaitable[Instance | None]],
    ) -> None:
        """`row_of` reads an instance by its uid; None: it is terminated, or has another uid."""
        self._row_of = row_of
        self._provider = provider
        self._environment_uid = environment_uid
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._since_ms = clock.boot_ms()
        self._notices = notices
        self._fence = fence
        # Those of a batch move to their next offer together, so they are a batch again.
        self._taken = BatchedCalls[str, Mapping[str, Mapping[str, Any] | NoOffer]](
            lambda uids: ledger.take_offers(uids, fence=fence, now_ms=clock.now_ms()),
            gate=gate, task_group=task_group, name="offers of hosts",
        )  # fmt: skip
        self._refused = BatchedCalls[Refusal, tuple[RefusedOffer, ...]](
            lambda refusals: ledger.refuse_offers(refusals, fence=fence, now_ms=clock.now_ms()),
            gate=gate, task_group=task_group, name="refused offers of hosts", done=notices.refused,
        )  # fmt: skip
        self._lists: dict[CloudPlace, tuple[int, Sequence[InstanceSeen]]] = {}
        self._locks: dict[CloudPlace, asyncio.Lock] = {}

    async def create(self, instance: Instance) -> Instance:
        """
        Have the cloud create an instance by one offer after the other, and return its row with address and key.

        Raises:
            NoCapacity: All offers were refused lately; its fleet retries.
            ProviderError: It does not exist; the message says why.
        """
        row: Instance | None = instance
        while row is not None and not row.is_created:
            await self._ask(row)
            row = await self._row_of(row.uid)
        if row is None:
            raise _Replaced(f"instance {instance.name}: another one has its place")
        return row

    async def create_or_wait(self, instance: Instance) -> bool:
        """See `apply.host_access.HostAccess.create`."""
        while True:
            try:
                await self.create(instance)
            except _Replaced:
                return True
            except AnswerUnknown as problem:
                self._notices.unanswered(instance, str(problem))
                await asyncio.sleep(problem.delay_seconds)
            except NoCapacity as problem:
                self._notices.problem(instance, without_name(instance, str(problem)))
                return False
            else:
                return True

    async def update_shared(
        self, fleet: str, instances: Sequence[Instance], shared: Mapping[str, Any]
    ) -> None:
        """See `apply.host_access.HostAccess.update_shared`; `instances` are all that the fleet has."""
        await self._creator().update_shared(
            fleet,
            [request_of(one) for one in instances],
            shared,
            lambda said: self._notices.sharing(fleet, said),
        )

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        """See `apply.host_access.HostAccess.forget_fleet`."""
        await self._creator().forget_fleet(cloud, fleet)

    async def _ask(self, instance: Instance) -> None:
        """Ask for an instance by its next offer, and record the answer."""
        taken = (await self._taken(instance.uid)).get(instance.uid)
        if taken is None:
            raise TemporaryError(f"instance {instance.name}: it is leaving")
        if isinstance(taken, NoOffer):
            problem = f"instance {instance.name}: {no_offer_left(taken)}"
            if taken.next_ms is not None:
                raise NoCapacity(problem)
            raise PermanentError(problem, advice=apply_again_text(taken, self._clock.now_ms()))
        request = replace(request_of(instance), endpoint=taken)
        if must_be_released(taken):
            await self._provider.release(request)
            await self._refused(Refusal(instance.uid, terms_of(taken), ""))
            return
        await self._refuse_unknown(replace(instance, endpoint=taken))
        try:
            created = await self._creator().create(
                request, lambda said: self._notices.creating(instance, said)
            )
        except HostGone:
            # It ended before its creation was recorded, and a uid is bought once.
            await self._refused(Refusal(instance.uid, terms_of(taken), "", exists=True))
            return
        except OfferRefused as refusal:
            await self._refused(
                Refusal(instance.uid, terms_of(taken), refusal.reason, refusal.exists)
            )
            return
        await self._gate(
            lambda: self._ledger.note_created(
                instance.uid, created, fence=self._fence, now_ms=self._clock.now_ms()
            )
        )

    async def prepare(self, instance: Instance) -> Instance:
        """
        Bring a new instance to where its agent can be installed, and return its row as it is then.

        One whose creation has failed is left alone at first: who reads why, corrects it and applies again would otherwise wait for the
        answer to a call that is cut off.
        """
        while instance.has_failed and self._clock.boot_ms() - self._since_ms < FAILED_MS:
            await asyncio.sleep(_LOOK_SECONDS)
            instance = await self._row_of(instance.uid) or instance
        instance = await self.create(instance)
        if instance.is_joining:
            await self._secure(instance)
            instance = await self._row_of(instance.uid) or instance
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
        """Make sure that the ledger knows, or has known, each instance of the fleet that its cloud lists in any of its regions."""
        offers = await self._gate(lambda: self._ledger.read_offers(instance.fleet))
        regions = dict.fromkeys(one.terms["region"] for one in offers)
        there = [
            replace(instance, endpoint={**instance.endpoint, "region": region})
            for region in regions or (instance.endpoint["region"],)
        ]
        unknown = await self._unknown(there)
        if unknown:
            # They may have been terminated since the lists were read.
            for one in there:
                self._lists.pop(place_of(one.provider, one.endpoint), None)
            unknown = await self._unknown(there)
        if unknown:
            raise PermanentError(
                unknown_instances_text(instance.fleet, unknown), advice=UNKNOWN_CURE
            )

    async def _unknown(self, places: Sequence[Instance]) -> list[str]:
        listed = await asyncio.gather(*map(self._listed, places))
        there = instances_of(places[0].fleet, chain.from_iterable(listed))
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
