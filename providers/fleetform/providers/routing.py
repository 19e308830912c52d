"""
All hosts of an environment, whichever provider has each.

A request names its provider, which is made when it is first needed. Volumes are directories of this
machine, and what exists under an environment's uid is listed on this machine alone: hosts elsewhere
are asked one by one, and prove whom they obey when they are greeted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fleetform.agents.protocol.messages import Cursor
from fleetform.providers.contract.checks import HostChecked
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import (
    AnswerRecords,
    CloudProvider,
    CreatedHost,
    Host,
    HostProvider,
    Identity,
    InstanceRequest,
    Pin,
    PreviewedChange,
    Report,
)
from fleetform.providers.contract.job_streams import JobStreams
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.contract.stacks import StackRecords
from fleetform.providers.contract.volumes import VolumeProvider
from fleetform.providers.registry import environment_variables, provider, provider_names

LOCAL = "local"
SSH = "ssh"


class RoutedHosts:
    """
    Implements `HostProvider`, `HostCreator`, `ImageSource` and `AnswerRecords` of `contract.hosts`,
    `contract.checks.HostChecker`, and `contract.volumes.VolumeSource`.
    """

    def __init__(
        self, state: Path, environment_uid: str, stacks: StackRecords | None = None
    ) -> None:
        """`stacks`: what is kept of clouds, where that is not in files of this machine."""
        self._state = state
        self._stacks = stacks
        self._environment_uid = environment_uid
        self._providers: dict[str, HostProvider] = {}

    @property
    def environment_variables(self) -> tuple[str, ...]:
        return environment_variables(provider_names())

    def act_under(self, fence: int) -> None:
        """Change clouds under this fence from now on: that of the manager lease of this process."""
        if self._stacks is not None:
            self._stacks.act_under(fence)

    def _of(self, name: str) -> HostProvider:
        if name not in self._providers:
            self._providers[name] = provider(
                name,
                state=self._state,
                environment_uid=self._environment_uid,
                stacks=self._stacks,
            )
        return self._providers[name]

    async def create(self, request: InstanceRequest, report: Report) -> CreatedHost:
        return await self._creator(request.provider).create(request, report)

    async def secure(self, request: InstanceRequest, pin: Pin) -> None:
        creator = self._creator(request.provider)

        async def keep_and_pin(keys: str) -> None:
            # First: a ledger of before may be put back.
            creator.keep_host_key(request, keys)
            await pin(keys)

        if not request.host_key:
            # The host made the key that it printed, and nothing else has its private half.
            await keep_and_pin(await creator.printed_host_key(request))
            return
        first = creator.first_host_key(request.uid)
        if first not in request.host_key.splitlines():
            return
        provider, reached = self._reached(request)
        secure = getattr(provider, "secure", None)
        assert secure is not None, f"provider {reached.provider} replaces no host keys"
        await secure(reached, first, keep_and_pin)

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]:
        creator = self._creator(requests[0].provider) if requests else None
        return () if creator is None else await creator.preview(requests, replaced, emptied=emptied)

    async def preview_release(
        self, requests: Sequence[InstanceRequest], created: Sequence[InstanceRequest]
    ) -> Sequence[PreviewedChange]:
        return await self._creator(requests[0].provider).preview_release(requests, created)

    async def listed(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return await self._creator(request.provider).listed(environment_uid, request)

    def unanswered(self, cloud: str) -> Mapping[str, int | None]:
        owner = self._of(cloud)
        return owner.unanswered(cloud) if isinstance(owner, AnswerRecords) else {}

    async def terminate(self, instance: InstanceSeen, report: Report) -> None:
        await self._creator(instance.provider).terminate(instance, report)

    async def newest_image(self, request: InstanceRequest) -> str:
        return await self._creator(request.provider).newest_image(request)

    async def adopt(
        self, instances: Sequence[InstanceSeen], report: Report
    ) -> Sequence[InstanceSeen]:
        adopted: list[InstanceSeen] = []
        for name in sorted({one.provider for one in instances}):
            mine = [one for one in instances if one.provider == name]
            adopted += await self._creator(name).adopt(mine, report)
        return adopted

    async def preview_shared(
        self, fleet: str, requests: Sequence[InstanceRequest], shared: Mapping[str, Any]
    ) -> Sequence[PreviewedChange]:
        return await self._creator(shared["cloud"]).preview_shared(fleet, requests, shared)

    async def update_shared(
        self,
        fleet: str,
        requests: Sequence[InstanceRequest],
        shared: Mapping[str, Any],
        report: Report,
    ) -> None:
        await self._creator(shared["cloud"]).update_shared(fleet, requests, shared, report)

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        await self._creator(cloud).forget_fleet(cloud, fleet)

    def _reached(self, request: InstanceRequest) -> tuple[HostProvider, InstanceRequest]:
        """
        Return the provider that reaches a host, and the request in its terms.

        An instance of a cloud is a host over SSH as soon as its address is known.
        """
        endpoint = self.ssh_endpoint(request)
        if endpoint is None:
            return self._of(request.provider), request
        return self._of(SSH), dataclasses.replace(request, provider=SSH, endpoint=endpoint)

    def ssh_endpoint(self, request: InstanceRequest) -> Mapping[str, Any] | None:
        """
        Return how an instance of a cloud is reached over SSH, in the terms of that provider; None: it is not, or not yet.

        Raises:
            PermanentError: This machine lacks the key of the hosts.
        """
        owner = self._of(request.provider)
        return owner.ssh_endpoint(request) if isinstance(owner, CloudProvider) else None

    def _creator(self, name: str) -> CloudProvider:
        creator = self._of(name)
        if not isinstance(creator, CloudProvider):
            raise PermanentError(f"provider {name} creates no hosts")
        return creator

    def volume_provider(self, name: str) -> VolumeProvider:
        """Return the provider of network volumes that belongs to a provider of hosts."""
        found = getattr(self._of(name), "disks", None)
        if found is None:
            raise PermanentError(f"provider {name} has no network volumes")
        volumes: VolumeProvider = found
        return volumes

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        provider, request = self._reached(request)
        return await provider.ensure(request)

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        provider, request = self._reached(request)
        return await provider.connect(request, identity, cursor)

    async def release(self, request: InstanceRequest) -> None:
        await self._of(request.provider).release(request)

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        provider, request = self._reached(request)
        return await provider.observe(request)

    async def check(self, request: InstanceRequest) -> HostChecked:
        provider, request = self._reached(request)
        found = getattr(provider, "check", None)
        if found is None:
            raise PermanentError(f"provider {request.provider} cannot check hosts")
        checked: HostChecked = await found(request)
        return checked

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        provider, request = self._reached(request)
        return await provider.open_streams(request)

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        return await self._of(LOCAL).inventory(environment_uid)

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return await self._of(request.provider).instances_on(environment_uid, request)

    async def look(self, instance: InstanceSeen) -> HostSeen:
        request = InstanceRequest(
            instance.uid, instance.name, instance.fleet, instance.declared,
            provider=instance.provider, endpoint=instance.endpoint, host_key=instance.host_key,
        )  # fmt: skip
        owner = self._of(instance.provider)
        if isinstance(owner, CloudProvider) and not request.host_key:
            key = await owner.known_host_key(request)
            request = dataclasses.replace(request, host_key=key)
        provider, reached = self._reached(request)
        seen = dataclasses.replace(
            instance,
            provider=reached.provider,
            endpoint=reached.endpoint,
            host_key=request.host_key,
        )
        return await provider.look(seen)

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return await self._of(LOCAL).volume_at(environment_uid, path)

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return await self._of(LOCAL).place_at(environment_uid, path)

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return await self._of(LOCAL).volume_around(environment_uid, path)

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return await self._of(LOCAL).volumes(environment_uid)
