"""
Calls of EC2 about one disk that are no part of a stack: looking, attaching, detaching, snapshots.

An attachment follows the jobs of the next minute and ends with its instance, so EC2 alone knows it. A snapshot
outlives the stack of its volume.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from fleetform.providers.contract.errors import PermanentError, ProviderError, TemporaryError
from fleetform.providers.contract.hosts import Report
from fleetform.providers.contract.volumes import DiskSeen
from fleetform.providers.pulumi.aws.clients import cloud_failures
from fleetform.providers.pulumi.aws.program import ENVIRONMENT_TAG, OPERATION_TAG

__all__ = ["DEVICES", "DiskCalls"]

DEVICES = tuple(f"/dev/sd{letter}" for letter in "fghijklmnop")
"""The names that AWS recommends for disks which are attached later."""

FORCE_SECONDS = 60.0
"""For how long an instance may hold on to a disk before it is taken away."""

_LOOK_SECONDS = 1.0

_SNAPSHOT_LOOK_SECONDS = 5.0

_ATTACH_SECONDS = 60.0


class DiskCalls:
    """Calls with one client, about one volume; `name` is for messages."""

    def __init__(self, client: Any, name: str) -> None:
        self._client = client
        self._name = name

    async def look(self, disk: str) -> DiskSeen | None:
        """Return the disk as it is; None: there is none of this id, or it is being deleted."""
        try:
            found = await self._call("describe_volumes", VolumeIds=[disk])
        except ProviderError as problem:
            if "InvalidVolume.NotFound" in str(problem):
                return None
            raise
        row = found["Volumes"][0]
        if row["State"] in {"deleting", "deleted"}:
            return None
        held = [one for one in row["Attachments"] if one["State"] != "detached"]
        return DiskSeen(
            row["VolumeId"],
            row["AvailabilityZone"],
            row["Size"],
            held[0]["InstanceId"] if held else "",
        )

    async def environment_of(self, instance: str) -> str:
        """Return the uid of the environment that an instance is a host of; empty: of none."""
        tags = (await self._instance(instance)).get("Tags", ())
        return next((str(one["Value"]) for one in tags if one["Key"] == ENVIRONMENT_TAG), "")

    async def untag(self, disk: str, names: Sequence[str]) -> None:
        await self._call("delete_tags", Resources=[disk], Tags=[{"Key": name} for name in names])

    async def attach(self, disk: str, instance: str) -> None:
        """Attach a free disk to an instance, and return once it is there."""
        used = await self._devices(instance)
        device = next((one for one in DEVICES if one not in used), None)
        if device is None:
            raise PermanentError(f"{self._name}: {instance} has {len(DEVICES)} disks already")
        await self._call("attach_volume", VolumeId=disk, InstanceId=instance, Device=device)
        async with self._within(_ATTACH_SECONDS, f"{disk} is not attached to {instance} yet"):
            await self._attached(disk)

    async def detach(self, disk: str, report: Report) -> None:
        """Detach a disk; by force once its instance has held on to it for too long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FORCE_SECONDS):
                await self._detach(disk, is_forced=False)
                return
        report(f"the instance of {disk} does not release it: it is detached by force")
        async with self._within(FORCE_SECONDS, f"{disk} is still attached to its instance"):
            await self._detach(disk, is_forced=True)

    async def snapshot(
        self, disk: str, tags: Mapping[str, str], operation_uid: str, report: Report
    ) -> str:
        """Make the snapshot of an operation, or find it, and wait until it is complete."""
        asked = [{"Name": f"tag:{OPERATION_TAG}", "Values": [operation_uid]}]
        there = (await self._call("describe_snapshots", Filters=asked))["Snapshots"]
        if there:
            snapshot = there[0]["SnapshotId"]
        else:
            wanted = {**tags, OPERATION_TAG: operation_uid}
            specification = {
                "ResourceType": "snapshot",
                "Tags": [{"Key": key, "Value": value} for key, value in wanted.items()],
            }
            made = await self._call(
                "create_snapshot",
                VolumeId=disk,
                Description=f"volume {tags['Name']} of fleetform",
                TagSpecifications=[specification],
            )
            snapshot = made["SnapshotId"]
        report(f"waiting for snapshot {snapshot} of {disk}")
        state = await self._ended_snapshot(snapshot)
        if state != "completed":
            raise PermanentError(
                f"{self._name}: snapshot {snapshot} of {disk} is in state {state}",
                advice="delete that snapshot, then apply again",
            )
        return str(snapshot)

    # -- parts ------------------------------------------------------------------------------------

    async def _detach(self, disk: str, *, is_forced: bool) -> None:
        try:
            await self._call("detach_volume", VolumeId=disk, Force=is_forced)
        except PermanentError as problem:
            # Its instance may have ended, which detaches too.
            if "IncorrectState" not in str(problem):
                raise
        while True:
            if not await self._attachment(disk):
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _attachment(self, disk: str) -> str:
        """Return the state of the attachment of a disk; empty where there is none."""
        found = await self._call("describe_volumes", VolumeIds=[disk])
        states = [one["State"] for one in found["Volumes"][0]["Attachments"]]
        return next((state for state in states if state != "detached"), "")

    async def _devices(self, instance: str) -> Sequence[str]:
        rows = (await self._instance(instance)).get("BlockDeviceMappings", [])
        return [one["DeviceName"] for one in rows]

    async def _instance(self, instance: str) -> Any:
        found = await self._call("describe_instances", InstanceIds=[instance])
        return found["Reservations"][0]["Instances"][0]

    async def _attached(self, disk: str) -> None:
        while True:
            if await self._attachment(disk) == "attached":
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _ended_snapshot(self, snapshot: str) -> str:
        """Return the last state of a snapshot; that of a large disk takes hours."""
        while True:
            found = await self._call("describe_snapshots", SnapshotIds=[snapshot])
            state = str(found["Snapshots"][0]["State"])
            if state != "pending":
                return state
            await asyncio.sleep(_SNAPSHOT_LOOK_SECONDS)

    @contextlib.asynccontextmanager
    async def _within(self, seconds: float, otherwise: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise TemporaryError(f"{self._name}: {otherwise}") from None

    async def _call(self, operation: str, **parameters: Any) -> Any:
        def call() -> Any:
            with cloud_failures(self._name):
                return getattr(self._client, operation)(**parameters)

        return await asyncio.to_thread(call)
