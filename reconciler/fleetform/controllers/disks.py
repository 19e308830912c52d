"""
Attaches the disks of network volumes to the hosts of the jobs that mount them, and detaches them afterwards.

A disk is attached to one instance at a time, and a shared file system mounted on any number of hosts. Where it is needed comes from rows; where it is, from the cloud. The ledger
notes an instance before the disk is attached to it, so a successor knows what to detach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from fleetform.agents.protocol.messages import Reply
from fleetform.controllers.hosts import HostSessions
from fleetform.controllers.mirror import Mirror
from fleetform.controllers.task_group import TaskGroup
from fleetform.model.history import LogLevel
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import Clock, Gate, Ledger, LedgerUnavailable, Progress
from fleetform.model.run import Run
from fleetform.model.volume import NetworkVolume
from fleetform.providers.contract.errors import (
    AttachedElsewhere,
    PermanentError,
    ProviderError,
    TemporaryError,
)
from fleetform.providers.contract.hosts import Host, HostProvider, Report
from fleetform.providers.contract.volumes import VolumeProvider, VolumeRequest, VolumeSource

__all__ = ["Disks"]

_KEEPS_SNAPSHOTS = "disk.snapshot"
"""The capability of an agent that never formats a disk that was made of a snapshot."""

SILENCE_MS = 30_000
"""How long a host that does not answer keeps a disk that no job uses: then it is detached without an unmount."""

RETRY_MS = 10_000
"""Pause after a detach that failed."""


class Disks:
    """All disks of network volumes, as long as this process is the manager."""

    def __init__(
        self,
        *,
        hosts: HostSessions,
        provider: HostProvider,
        ledger: Ledger,
        gate: Gate,
        clock: Clock,
        progress: Progress,
        task_group: TaskGroup,
        fence: int,
    ) -> None:
        self._hosts = hosts
        self._provider = provider
        self._ledger = ledger
        self._gate = gate
        self._clock = clock
        self._progress = progress
        self._task_group = task_group
        self._fence = fence
        self._locks: dict[str, asyncio.Lock] = {}
        self._volumes: Mapping[str, NetworkVolume] = {}
        # By volume uid: what was written since the mirror was read.
        self._attached: dict[str, str] = {}
        self._unused_since_ms: dict[str, int] = {}
        self._retry_at_ms: dict[str, int] = {}
        self._detaching: set[str] = set()
        self.is_busy = False
        """Some disk is about to be detached: a controller that ends now would leave it attached."""

    def provider(self, name: str) -> VolumeProvider:
        """Return the provider of the network volumes of a cloud."""
        assert isinstance(self._provider, VolumeSource), "no provider has network volumes"
        return self._provider.volume_provider(name)

    def report(self, volume: str) -> Report:
        """Return what shows sentences about the progress of a network volume."""

        def tell(said: str) -> None:
            self._progress.notice(said, event="volume.progress", details={"volume": volume})

        return tell

    async def mounted(
        self, run: Run, instance: Instance, host: Host, mirror: Mirror
    ) -> Mapping[str, str]:
        """
        Mount the disks and file systems that a run needs, and return their paths as declared, by volume.

        Raises:
            ProviderError: One of them cannot be had on this host; the message says why.
        """
        wanted = [
            mirror.disks[one.name] for one in run.template.volumes if one.name in mirror.disks
        ]
        for volume in wanted:
            async with self._lock(volume.uid):
                await self._mount(volume, instance, host, mirror)
        return {one.name: one.path for one in wanted}

    async def detached(self, request: VolumeRequest) -> None:
        """
        Return once a disk is unmounted from its host and detached, or a file system unmounted from all hosts.

        Raises:
            ProviderError: It is still attached; the message says why.
        """
        async with self._lock(request.uid):
            if request.place.get("file_system"):
                await self._unmount_everywhere(request)
                return
            known = self._volumes.get(request.name)
            at = "" if known is None or known.uid != request.uid else self._at(known)
            await self._take_away(request, at)

    def round(self, mirror: Mirror) -> None:
        """Start to detach what no job uses any more."""
        self._volumes = mirror.disks
        self.is_busy = bool(self._detaching)
        for volume in mirror.disks.values():
            at = self._at(volume)
            if not at or volume.uid in self._detaching:
                continue
            if mirror.uses_disk(volume.name, at):
                self._unused_since_ms.pop(volume.uid, None)
                continue
            self.is_busy = True
            now_ms = self._clock.now_ms()
            since_ms = self._unused_since_ms.setdefault(volume.uid, now_ms)
            if now_ms < self._retry_at_ms.get(volume.uid, 0):
                continue
            if self._is_silent(at, mirror.instances) and now_ms - since_ms < SILENCE_MS:
                continue
            self._detaching.add(volume.uid)
            self._task_group.start(self._detach(volume, mirror), name=f"detach {volume.name}")

    # -- one disk ---------------------------------------------------------------------------------

    async def _mount(
        self, volume: NetworkVolume, instance: Instance, host: Host, mirror: Mirror
    ) -> None:
        if not volume.may_be_at(instance.provider, instance.endpoint):
            place = volume.request["place"]
            raise PermanentError(
                f"volume {volume.name}: {volume.disk} is in {place['zone'] or place['region']}, where host"
                f" {instance.name} is not"
            )
        path = host.volume_path(volume.path)
        if volume.is_shared:
            kind = volume.request["place"]["file_system"]
            _require_mounted(volume, await host.mount_file_system(kind, volume.source, path))
            return
        at = self._at(volume)
        if at and at != instance.uid:
            if mirror.uses_disk(volume.name, at):
                raise PermanentError(f"volume {volume.name} is in use on another host")
            await self._take_away(_request(volume), at)
        if at != instance.uid:
            await self._note(volume.uid, instance.uid)
        provider = self.provider(volume.request["provider"])
        report = self.report(volume.name)
        try:
            await provider.attach(_request(volume), instance.endpoint["id"], report)
        except AttachedElsewhere:
            # What is not on this host must not be detached once its job has ended.
            await self._note(volume.uid, "")
            raise
        snapshot = volume.request["place"].get("snapshot", "")
        if snapshot and _KEEPS_SNAPSHOTS not in host.seen.capabilities:
            # It would format the disk if it found no file system.
            raise PermanentError(
                f"volume {volume.name}: the agent of host {instance.name} is of an earlier release, which"
                f" cannot mount a disk that was made of a snapshot",
                advice="the agent is replaced once the host has no jobs",
            )
        reply = await host.mount_disk(volume.uid, volume.name, volume.disk, path, snapshot)
        _require_mounted(volume, reply)
        if warning := reply.body.get("warning"):
            self._progress.notice(
                f"volume {volume.name}: {warning}",
                event="volume.warning", level=LogLevel.WARNING, details={"volume": volume.name},
            )  # fmt: skip

    async def _detach(self, volume: NetworkVolume, mirror: Mirror) -> None:
        try:
            async with self._lock(volume.uid):
                at = self._at(volume)
                if at and not mirror.uses_disk(volume.name, at):
                    await self._take_away(_request(volume), at)
                    await self._note(volume.uid, "")
        except ProviderError as problem:
            self.report(volume.name)(f"volume {volume.name} is not detached yet: {problem}")
            self._retry_at_ms[volume.uid] = self._clock.now_ms() + RETRY_MS
        except LedgerUnavailable:
            pass  # The round meets the same, and waits.
        finally:
            self._detaching.discard(volume.uid)
            self._hosts.wake()

    async def _unmount_everywhere(self, request: VolumeRequest) -> None:
        """Unmount a file system; on a host that does not answer it stays mounted, which harms no data."""
        book = await self._gate(lambda: self._ledger.read_book(()))
        names = {
            one.uid: one
            for one in book.instances
            if one.provider == request.provider and one.state is InstanceState.READY
        }
        try:
            reached = await self._hosts.reach_some(tuple(names.values())) if names else {}
        except ProviderError:
            reached = {}
        for uid, host in reached.items():
            await _unmount(request, names[uid].name, host)

    async def _take_away(self, request: VolumeRequest, at: str) -> None:
        session = self._hosts.session(at) if at else None
        if session is not None and session.host is not None:
            await _unmount(request, session.instance.name, session.host)
        await self.provider(request.provider).detach(request, self.report(request.name))

    async def _note(self, volume_uid: str, instance_uid: str) -> None:
        await self._gate(
            lambda: self._ledger.note_attachment(volume_uid, instance_uid, fence=self._fence)
        )
        self._attached[volume_uid] = instance_uid

    def _at(self, volume: NetworkVolume) -> str:
        return self._attached.get(volume.uid, volume.attached_to)

    def _is_silent(self, instance_uid: str, instances: Iterable[Instance]) -> bool:
        """Tell whether an instance exists and does not answer now."""
        session = self._hosts.session(instance_uid)
        answers = session is not None and session.host is not None
        return not answers and any(one.uid == instance_uid for one in instances)

    def _lock(self, volume_uid: str) -> asyncio.Lock:
        return self._locks.setdefault(volume_uid, asyncio.Lock())


async def _unmount(request: VolumeRequest, name: str, host: Host) -> None:
    path = host.volume_path(NetworkVolume(request.name, request.uid, {}).path)
    reply = await host.unmount_disk(path)
    if not reply.ok:
        raise TemporaryError(f"host {name}: {reply.message or reply.code}")


def _require_mounted(volume: NetworkVolume, reply: Reply) -> None:
    if not reply.ok:
        raise PermanentError(f"volume {volume.name}: {reply.message or reply.code}")


def _request(volume: NetworkVolume) -> VolumeRequest:
    return VolumeRequest(uid=volume.uid, name=volume.name, **volume.request)
