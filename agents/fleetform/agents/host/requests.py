"""
Requests that concern no job: contents of files, volumes, and what the host has.

They do not go through the journal, because what they change says by itself what it is: a
content bears its digest, a volume its owner. What may take long runs in a thread.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from fleetform.agents.host import (
    disks,
    file_systems,
    gpu_processes,
    gpus,
    host_report,
    layout,
    snapshots,
    volumes,
)
from fleetform.agents.host.blobs import NO_SPACE, BlobError, BlobStore
from fleetform.agents.host.volumes import VolumeError
from fleetform.agents.protocol.frames import Message
from fleetform.agents.protocol.host_report import GpuProcess, GpuReport
from fleetform.agents.protocol.messages import (
    MakeVolume,
    MissingBlobs,
    MountDisk,
    MountFileSystem,
    Probe,
    PutBlob,
    RemoveVolume,
    Reply,
    SnapshotVolume,
    UnmountDisk,
    to_json,
)

T = TypeVar("T")

_KNOWN = (
    MissingBlobs, PutBlob, MakeVolume, RemoveVolume, SnapshotVolume, MountDisk, MountFileSystem,
    UnmountDisk, Probe,
)  # fmt: skip

_GPUS_SECONDS = 60
"""nvidia-smi takes seconds on a cold driver, and every connection begins with a probe."""

_GPU_PROCESSES_SECONDS = 1
"""Who asks at the same moment shares one look; a new controller allots GPUs by what the agent answers."""


class Requests:
    """
    Attributes:
        blobs: The contents that the host has; channels bring them too.
    """

    def __init__(self, root: str, limits: Sequence[str]) -> None:
        self._root = root
        self._limits = limits
        self.blobs = BlobStore(f"{root}/{layout.BLOBS}")
        self.blobs.discard_earlier()
        self._gpus: tuple[GpuReport, ...] = ()
        self._gpus_until = 0.0
        self._gpu_processes: dict[str, GpuProcess] = {}
        self._gpu_processes_until = 0.0

    def knows(self, message: Message) -> bool:
        return isinstance(message, _KNOWN)

    async def answer(self, message: Message, owner: str, owner_name: str = "") -> Reply:
        """Carry out one request for the environment `owner`; errors become refusals."""
        assert isinstance(message, _KNOWN)
        try:
            return Reply(message.id, True, body=await self._carry_out(message, owner, owner_name))
        except (BlobError, VolumeError, OSError) as error:
            return refusal(message.id, error)

    async def _carry_out(self, message: Message, owner: str, owner_name: str) -> dict[str, Any]:
        if isinstance(message, MissingBlobs):
            return {"missing": self.blobs.missing(message.digests)}
        if isinstance(message, PutBlob):
            await self._put(message)
        elif isinstance(message, MakeVolume):
            volumes.make(message, owner, owner_name=owner_name, now_ms=_now_ms())
        elif isinstance(message, RemoveVolume):
            await _aside(lambda: volumes.remove(message, owner))
        elif isinstance(message, MountDisk):
            warning = await _aside(lambda: disks.mount(message))
            volumes.make(
                MakeVolume(0, "", message.volume_uid, message.name, message.path),
                owner, owner_name=owner_name, now_ms=_now_ms(),
            )  # fmt: skip
            return {"warning": warning} if warning else {}
        elif isinstance(message, MountFileSystem):
            await _aside(lambda: file_systems.mount(message))
        elif isinstance(message, UnmountDisk):
            await _aside(lambda: disks.unmount(message.path))
        elif isinstance(message, SnapshotVolume):
            return {"places": await _aside(lambda: snapshots.put_aside(message, owner, _now_ms()))}
        else:
            gpus = await self._find_gpu_processes(await self._detect_gpus())
            return {"host": to_json(host_report.report(self._root, self._limits, gpus))}
        return {}

    async def _put(self, message: PutBlob) -> None:
        self.blobs.put(message.sha256, message.offset, message.data)
        if message.last:
            check = self.blobs.finish(message.sha256)
            if message.offset > 0:
                # The whole of a large content is hashed now.
                await _aside(check)
            else:
                check()

    async def _detect_gpus(self) -> tuple[GpuReport, ...]:
        if gpus.present() and time.monotonic() >= self._gpus_until:
            self._gpus_until = time.monotonic() + _GPUS_SECONDS
            loop = asyncio.get_running_loop()
            self._gpus = await loop.run_in_executor(None, gpus.detect)
        return self._gpus

    async def _find_gpu_processes(self, found: tuple[GpuReport, ...]) -> tuple[GpuReport, ...]:
        """Add the processes that use the GPUs outside fleetform; the last known if none answers."""
        if found and time.monotonic() >= self._gpu_processes_until:
            self._gpu_processes_until = time.monotonic() + _GPU_PROCESSES_SECONDS
            now = await _aside(gpu_processes.find)
            self._gpu_processes = self._gpu_processes if now is None else now
        return tuple(
            dataclasses.replace(gpu, used_by=self._gpu_processes.get(gpu.uuid)) for gpu in found
        )


def refusal(id_: int, error: BlobError | VolumeError | OSError) -> Reply:
    if isinstance(error, OSError):
        return Reply(id_, False, "no_space" if error.errno in NO_SPACE else "io", str(error))
    return Reply(id_, False, error.code, str(error))


def _now_ms() -> int:
    return int(time.time() * 1000)


async def _aside(work: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(None, work)
