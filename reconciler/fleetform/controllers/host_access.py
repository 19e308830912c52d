"""Host access of an apply's steps: the manager's sessions, and the hosts and volumes that go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fleetform.controllers.disks import Disks
from fleetform.controllers.fleets import Departures
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.volumes import Volumes
from fleetform.model.instance import Instance
from fleetform.providers.contract.hosts import Host, Report
from fleetform.providers.contract.volumes import VolumeProvider, VolumeRequest


@dataclass(frozen=True, slots=True)
class ManagedHostAccess:
    """Implements `apply.host_access.HostAccess`; the docstrings there hold here."""

    hosts: HostSessions
    departures: Departures
    volumes: Volumes
    disks: Disks

    @property
    def environment_uid(self) -> str:
        return self.hosts.environment_uid

    async def instances(self, fleet: str) -> Sequence[Instance]:
        return await self.hosts.instances(fleet)

    async def is_exchanging(self, fleet: str) -> bool:
        return await self.hosts.is_exchanging(fleet)

    async def create(self, instance: Instance) -> bool:
        return await self.hosts.create(instance)

    async def reach(self, instance: Instance) -> Host:
        return await self.hosts.reach(instance)

    async def reach_some(self, instances: Sequence[Instance]) -> Mapping[str, Host]:
        return await self.hosts.reach_some(instances)

    async def depart(self, instance: Instance) -> None:
        await self.departures.depart(instance)

    async def update_shared(self, fleet: str, shared: Mapping[str, Any]) -> None:
        await self.hosts.update_shared(fleet, shared)

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        await self.hosts.forget_fleet(cloud, fleet)

    async def unmounted(self, volume: str, fleet: str) -> None:
        await self.volumes.unmounted(volume, fleet)

    def volume_provider(self, name: str) -> VolumeProvider:
        return self.disks.provider(name)

    async def detached(self, request: VolumeRequest) -> None:
        await self.disks.detached(request)

    def report(self, volume: str) -> Report:
        return self.disks.report(volume)

    def ends_asked(self) -> None:
        self.hosts.rows_changed = True
        self.hosts.wake()
