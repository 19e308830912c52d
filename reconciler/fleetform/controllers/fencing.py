"""
A provider's hosts under a manager lease: before any host is asked, the right to is checked.

A manager that was paused, or whose ledger has not answered for a while, may have a successor. It
must not find that out from what it has already done. Looking is always allowed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from fleetform.agents.protocol.host_report import GpuProcess
from fleetform.agents.protocol.messages import Cursor, Event, JobKey, LogData, Reply, StartJob
from fleetform.agents.protocol.states import Cause
from fleetform.model.leadership import ManagerLease
from fleetform.model.refusals import FenceLost, LedgerUnusable
from fleetform.providers.contract.hosts import (
    CreatedHost,
    Host,
    HostCreator,
    HostProvider,
    Identity,
    InstanceRequest,
    Pin,
    PreviewedChange,
    Report,
)
from fleetform.providers.contract.job_streams import (
    ExecRequest,
    ExecSession,
    JobStreams,
    RankCall,
    RankStreams,
)
from fleetform.providers.contract.observed import (
    HostSeen,
    InstanceSeen,
    NeighbourSeen,
    PlaceSeen,
    VolumeSeen,
)
from fleetform.providers.contract.volumes import (
    DiskSeen,
    VolumeProvider,
    VolumeRequest,
    VolumeSource,
)

__all__ = ["FencedHosts"]


class FencedHosts:
    """
    Implements `HostProvider` and `HostCreator` of `providers.contract.hosts`, and `VolumeSource` of
    `providers.contract.volumes`; the docstrings there hold here.

    Each call that causes something raises FenceLost, and causes nothing, once the manager lease is over.
    """

    def __init__(self, provider: HostProvider, manager_lease: ManagerLease) -> None:
        self._provider = provider
        self._manager_lease = manager_lease

    @property
    def environment_variables(self) -> tuple[str, ...]:
        return self._provider.environment_variables

    async def create(self, request: InstanceRequest, report: Report) -> CreatedHost:
        self._manager_lease.require()
        return await self._creator().create(request, report)

    async def secure(self, request: InstanceRequest, pin: Pin) -> None:
        self._manager_lease.require()
        await self._creator().secure(request, pin)

    async def preview(
        self, requests: Sequence[InstanceRequest], replaced: int = 0, *, emptied: bool = False
    ) -> Sequence[PreviewedChange]:
        return await self._creator().preview(requests, replaced, emptied=emptied)

    async def preview_release(
        self, requests: Sequence[InstanceRequest], created: Sequence[InstanceRequest]
    ) -> Sequence[PreviewedChange]:
        return await self._creator().preview_release(requests, created)

    def volume_provider(self, name: str) -> VolumeProvider:
        assert isinstance(self._provider, VolumeSource), "the provider has no network volumes"
        return _FencedVolumes(self._provider.volume_provider(name), self._manager_lease)

    async def listed(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return await self._creator().listed(environment_uid, request)

    async def terminate(self, instance: InstanceSeen, report: Report) -> None:
        self._manager_lease.require()
        await self._creator().terminate(instance, report)

    async def adopt(
        self, instances: Sequence[InstanceSeen], report: Report
    ) -> Sequence[InstanceSeen]:
        self._manager_lease.require()
        return await self._creator().adopt(instances, report)

    async def preview_shared(
        self, fleet: str, requests: Sequence[InstanceRequest], shared: Mapping[str, Any]
    ) -> Sequence[PreviewedChange]:
        return await self._creator().preview_shared(fleet, requests, shared)

    async def update_shared(
        self,
        fleet: str,
        requests: Sequence[InstanceRequest],
        shared: Mapping[str, Any],
        report: Report,
    ) -> None:
        self._manager_lease.require()
        await self._creator().update_shared(fleet, requests, shared, report)

    async def forget_fleet(self, cloud: str, fleet: str) -> None:
        self._manager_lease.require()
        await self._creator().forget_fleet(cloud, fleet)

    def _creator(self) -> HostCreator:
        assert isinstance(self._provider, HostCreator), "the provider creates no hosts"
        return self._provider

    async def ensure(self, request: InstanceRequest) -> Sequence[str]:
        self._manager_lease.require()
        return await self._provider.ensure(request)

    async def connect(
        self, request: InstanceRequest, identity: Identity, cursor: Cursor | None
    ) -> Host:
        # A hello ends the session of an older fence: it is an effect.
        self._manager_lease.require()
        return _FencedHost(
            await self._provider.connect(request, identity, cursor), self._manager_lease
        )

    async def release(self, request: InstanceRequest) -> None:
        self._manager_lease.require()
        await self._provider.release(request)

    async def inventory(self, environment_uid: str) -> Sequence[InstanceSeen]:
        return await self._provider.inventory(environment_uid)

    async def instances_on(
        self, environment_uid: str, request: InstanceRequest
    ) -> Sequence[InstanceSeen]:
        return await self._provider.instances_on(environment_uid, request)

    async def look(self, instance: InstanceSeen) -> HostSeen:
        return await self._provider.look(instance)

    async def volume_at(self, environment_uid: str, path: str) -> VolumeSeen | None:
        return await self._provider.volume_at(environment_uid, path)

    async def observe(self, request: InstanceRequest) -> HostSeen | None:
        return await self._provider.observe(request)

    async def open_streams(self, request: InstanceRequest) -> JobStreams:
        return await self._provider.open_streams(request)

    async def place_at(self, environment_uid: str, path: str) -> PlaceSeen:
        return await self._provider.place_at(environment_uid, path)

    async def volume_around(self, environment_uid: str, path: str) -> NeighbourSeen | None:
        return await self._provider.volume_around(environment_uid, path)

    async def volumes(self, environment_uid: str) -> Sequence[VolumeSeen]:
        return await self._provider.volumes(environment_uid)


class _FencedVolumes:
    """Implements `providers.contract.volumes.VolumeProvider`."""

    def __init__(self, provider: VolumeProvider, manager_lease: ManagerLease) -> None:
        self._provider = provider
        self._manager_lease = manager_lease

    async def preview(self, request: VolumeRequest) -> Sequence[PreviewedChange]:
        return await self._provider.preview(request)

    async def preview_delete(
        self, request: VolumeRequest, *, with_snapshot: bool
    ) -> Sequence[PreviewedChange]:
        return await self._provider.preview_delete(request, with_snapshot=with_snapshot)

    async def ensure(self, request: VolumeRequest, report: Report) -> DiskSeen:
        self._manager_lease.require()
        return await self._provider.ensure(request, report)

    async def attach(self, request: VolumeRequest, instance: str, report: Report) -> None:
        self._manager_lease.require()
        await self._provider.attach(request, instance, report)

    async def detach(self, request: VolumeRequest, report: Report) -> None:
        self._manager_lease.require()
        await self._provider.detach(request, report)

    async def snapshot(self, request: VolumeRequest, operation_uid: str, report: Report) -> str:
        self._manager_lease.require()
        return await self._provider.snapshot(request, operation_uid, report)

    async def delete(self, request: VolumeRequest, report: Report) -> None:
        self._manager_lease.require()
        await self._provider.delete(request, report)

    async def release(self, request: VolumeRequest) -> None:
        self._manager_lease.require()
        await self._provider.release(request)

    async def observe(self, request: VolumeRequest) -> DiskSeen | None:
        return await self._provider.observe(request)


class _FencedRanks:
    """Implements `providers.contract.job_streams.RankStreams`."""

    def __init__(self, ranks: RankStreams, manager_lease: ManagerLease) -> None:
        self._ranks = ranks
        self._manager_lease = manager_lease

    async def open_exec(self, command: ExecRequest) -> ExecSession:
        self._manager_lease.require()
        return await self._ranks.open_exec(command)

    def calls(self) -> AsyncIterator[RankCall]:
        return self._ranks.calls()


class _FencedHost:
    """Implements `providers.contract.hosts.Host`."""

    def __init__(self, host: Host, manager_lease: ManagerLease) -> None:
        self._host = host
        self._manager_lease = manager_lease
        self.seen = host.seen
        self.ranks: RankStreams = _FencedRanks(host.ranks, manager_lease)

    async def look_again(self) -> HostSeen:
        return await self._host.look_again()

    async def prepare(self, job: StartJob) -> Reply:
        self._manager_lease.require()
        return await self._host.prepare(job)

    async def start(self, key: JobKey, gen: int, boot_id: str) -> Reply:
        self._manager_lease.require()
        return await self._host.start(key, gen, boot_id)

    async def stop(
        self, key: JobKey, job_uid: str, gen: int, *, cause: Cause, grace_seconds: int | None
    ) -> Reply:
        self._manager_lease.require()
        return await self._host.stop(key, job_uid, gen, cause=cause, grace_seconds=grace_seconds)

    async def forget(self, keys: Sequence[JobKey]) -> Reply:
        self._manager_lease.require()
        return await self._host.forget(keys)

    async def acknowledge(self, cursor: Cursor, commits: int = 0) -> None:
        self._manager_lease.require()
        await self._host.acknowledge(cursor, commits)

    async def missing_blobs(self, digests: Sequence[str]) -> Sequence[str]:
        return await self._host.missing_blobs(digests)

    async def put_blob(self, sha256: str, path: str) -> None:
        self._manager_lease.require()
        await self._host.put_blob(sha256, path)

    def volume_path(self, path: str) -> str:
        return self._host.volume_path(path)

    async def make_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, *, take: str = "any"
    ) -> Reply:
        self._manager_lease.require()
        return await self._host.make_volume(operation_uid, volume_uid, name, path, take=take)

    async def remove_volume(
        self, operation_uid: str, volume_uid: str, path: str, *, delete_data: bool
    ) -> Reply:
        self._manager_lease.require()
        return await self._host.remove_volume(
            operation_uid, volume_uid, path, delete_data=delete_data
        )

    async def mount_disk(
        self, volume_uid: str, name: str, disk: str, path: str, snapshot: str = ""
    ) -> Reply:
        self._manager_lease.require()
        return await self._host.mount_disk(volume_uid, name, disk, path, snapshot)

    async def mount_file_system(self, kind: str, source: str, path: str) -> Reply:
        self._manager_lease.require()
        return await self._host.mount_file_system(kind, source, path)

    async def unmount_disk(self, path: str) -> Reply:
        self._manager_lease.require()
        return await self._host.unmount_disk(path)

    async def snapshot_volume(
        self, operation_uid: str, volume_uid: str, name: str, path: str, into: str
    ) -> Reply:
        self._manager_lease.require()
        return await self._host.snapshot_volume(operation_uid, volume_uid, name, path, into)

    @property
    def silent_seconds(self) -> float:
        return self._host.silent_seconds

    @property
    def is_overdue(self) -> bool:
        return self._host.is_overdue

    def answer_heartbeats(self, may: Callable[[], bool]) -> None:
        # A successor counts from its own beginning: nothing may be answered after that.
        self._host.answer_heartbeats(lambda: self._is_manager() and may())

    def _is_manager(self) -> bool:
        try:
            self._manager_lease.require()
        except (FenceLost, LedgerUnusable):
            return False
        return True

    async def follow_log(self, job_uid: str, offset: int) -> None:
        await self._host.follow_log(job_uid, offset)

    async def gpu_processes(self) -> Mapping[str, GpuProcess | None]:
        return await self._host.gpu_processes()

    async def shutdown(self, *, force: bool) -> Reply:
        self._manager_lease.require()
        return await self._host.shutdown(force=force)

    def news(self) -> AsyncIterator[Sequence[Event | LogData]]:
        return self._host.news()

    async def close(self) -> None:
        await self._host.close()
