"""
A volume's steps: a directory on each host of its fleet.

Making it twice is the same as once, because the host keeps the volume's uid with the data. What
takes it away, in whatever way, does so when the runs that have it mounted have really ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from fleetform.agents.protocol.messages import Reply
from fleetform.apply.host_access import HostAccess, together
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import Step
from fleetform.model.ports import Begun
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.hosts import Host

LOOK_SECONDS = 0.1
"""How often the hosts of a fleet are looked at that is without any for a moment."""

EXCHANGE_SECONDS = 60.0
"""How long a step waits for that; as long as for a host's first hello, which is most of it."""


async def make(step: Step, begun: Begun, access: HostAccess) -> None:
    """A new directory, or one that is empty; a directory with data is only adopted when that is declared."""
    await _make(step, begun, access, "new")


async def adopt(step: Step, begun: Begun, access: HostAccess) -> None:
    """The directory that is there, whatever is in it."""
    await _make(step, begun, access, "found")


async def update(step: Step, begun: Begun, access: HostAccess) -> None:
    """The directory that is this volume already; one that is gone is made only if the plan says so."""
    await _make(step, begun, access, step.arguments.get("take", "kept"))


async def _make(step: Step, begun: Begun, access: HostAccess, take: str) -> None:
    hosts, path = await _hosts(step, access), step.arguments["path"]
    replies = await together(
        host.make_volume(
            begun.operation_uid,
            begun.resource_uid,
            step.resource.name,
            host.volume_path(path),
            take=take,
        )
        for host in hosts
    )
    _raise_first(replies)


async def remove(step: Step, begun: Begun, access: HostAccess) -> None:
    """Delete the data on every host. Asked for by the document and permitted by the plan."""
    await access.unmounted(step.resource.name, step.arguments["fleet"])
    hosts, path = await _hosts(step, access), step.arguments["path"]
    replies = await together(
        host.remove_volume(
            begun.operation_uid, begun.resource_uid, host.volume_path(path), delete_data=True
        )
        for host in hosts
    )
    _raise_first(replies)


async def forget(step: Step, begun: Begun, access: HostAccess) -> None:
    """Leave the data where it is; another volume may have its place from now on."""
    await access.unmounted(step.resource.name, step.arguments["fleet"])


async def snapshot(step: Step, begun: Begun, access: HostAccess) -> dict[str, list[str]]:
    """
    Move the data to a snapshot on every host, where the plan says; only a person removes it.

    Returns:
        `places` where the volume's data lies by now, as declared ones are written.
    """
    await access.unmounted(step.resource.name, step.arguments["fleet"])
    hosts, path, into = await _hosts(step, access), step.arguments["path"], step.arguments["into"]
    replies = await together(
        host.snapshot_volume(
            begun.operation_uid,
            begun.resource_uid,
            step.resource.name,
            host.volume_path(path),
            host.volume_path(into),
        )
        for host in hosts
    )
    _raise_first(replies)
    # They differ from the place in the plan in what stands behind it, if at all.
    places = {
        into + place.removeprefix(host.volume_path(into))
        for host, reply in zip(hosts, replies, strict=True)
        for place in reply.body.get("places", (host.volume_path(into),))
    }
    return {"places": sorted(places)}


async def _hosts(step: Step, access: HostAccess) -> list[Host]:
    fleet = step.arguments["fleet"]
    wanted = await _staying(fleet, access)
    if not wanted:
        raise PermanentError(
            f"fleet {fleet} has no host for volume {step.resource.name}",
            advice="declare at least one node in the fleet",
        )
    return await together(access.reach(instance) for instance in wanted)


async def _staying(fleet: str, access: HostAccess) -> list[Instance]:
    """Those that do not leave. Where all make room for others, the first of those is waited for."""
    for _ in range(round(EXCHANGE_SECONDS / LOOK_SECONDS)):
        instances = await access.instances(fleet)
        staying = [one for one in instances if one.state is not InstanceState.TERMINATING]
        if staying or not await access.is_exchanging(fleet):
            return staying
        await asyncio.sleep(LOOK_SECONDS)
    raise TemporaryError(f"fleet {fleet} is replacing its hosts, and no new host is ready")


def _raise_first(replies: Sequence[Reply]) -> None:
    for reply in replies:
        if not reply.ok:
            raise PermanentError(reply.message or reply.code)
