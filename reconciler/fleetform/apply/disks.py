"""The steps of a network volume: its disk is created, grown, kept as a snapshot, released or deleted."""

from __future__ import annotations

from typing import Any

from fleetform.apply.host_access import HostAccess
from fleetform.model.apply import Begun
from fleetform.model.plan import Step
from fleetform.model.volume import DISK
from fleetform.providers.contract.volumes import VolumeProvider, VolumeRequest

__all__ = ["delete", "ensure", "release", "snapshot"]


async def ensure(step: Step, begun: Begun, access: HostAccess) -> dict[str, Any]:
    """Create, grow or register the disk; a disk that is gone is not created a second time."""
    seen = await _provider(step, access).ensure(
        _request(step, begun), access.report(step.resource.name)
    )
    shared = {"source": seen.source} if seen.source else {}
    return {DISK: {"id": seen.id, "zone": seen.zone, "size_gb": seen.size_gb, **shared}}


async def delete(step: Step, begun: Begun, access: HostAccess) -> None:
    request = _request(step, begun)
    await access.detached(request)
    await _provider(step, access).delete(request, access.report(step.resource.name))


async def release(step: Step, begun: Begun, access: HostAccess) -> None:
    """Stop managing the disk; it stays, attached to nothing."""
    request = _request(step, begun)
    await access.detached(request)
    await _provider(step, access).release(request)


async def snapshot(step: Step, begun: Begun, access: HostAccess) -> dict[str, list[str]]:
    """
    Keep a snapshot, then delete the disk.

    Returns:
        `places`: the snapshot.
    """
    request, provider = _request(step, begun), _provider(step, access)
    report = access.report(step.resource.name)
    await access.detached(request)
    made = await provider.snapshot(request, begun.operation_uid, report)
    await provider.delete(request, report)
    return {"places": [made] if made else []}


def _provider(step: Step, access: HostAccess) -> VolumeProvider:
    return access.volume_provider(step.arguments[DISK]["provider"])


def _request(step: Step, begun: Begun) -> VolumeRequest:
    return VolumeRequest(uid=begun.resource_uid, name=step.resource.name, **step.arguments[DISK])
