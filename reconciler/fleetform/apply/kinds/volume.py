"""
A volume's steps: a directory on each host of its fleet or on those that it lists, or a disk (`apply.disks`).

Making it twice is the same as once, because the host keeps the volume's uid with the data. What
takes it away, in whatever way, does so when the runs that have it mounted have really ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fleetform.agents.protocol.messages import Reply
from fleetform.apply import disks
from fleetform.apply.host_access import HostAccess, together
from fleetform.model.apply import Begun
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import Step
from fleetform.model.volume import DISK, MADE_ON, NOT_ON
from fleetform.providers.contract.errors import PermanentError, TemporaryError
from fleetform.providers.contract.hosts import Host
from fleetform.spec.names import natural_order

LOOK_SECONDS = 0.1
"""How often the hosts of a fleet are looked at that is without any for a moment."""

EXCHANGE_SECONDS = 60.0
"""How long a step waits for that; as long as for a host's first hello, which is most of it."""


async def make(step: Step, begun: Begun, access: HostAccess) -> dict[str, Any]:
    """A new directory, or one that is empty; a directory with data is only adopted when that is declared."""
    if DISK in step.arguments:
        return await disks.ensure(step, begun, access)
    return await _make(step, begun, access, "new")


async def adopt(step: Step, begun: Begun, access: HostAccess) -> dict[str, Any]:
    """The directory that is there, whatever is in it."""
    return await _make(step, begun, access, "found")


async def update(step: Step, begun: Begun, access: HostAccess) -> dict[str, Any]:
    """
    The directory that is this volume already; one that is gone is made only if the plan says so.

    Hosts that are not known to have it get a new one.
    """
    if DISK in step.arguments:
        return await disks.ensure(step, begun, access)
    return await _make(step, begun, access, step.arguments.get("take", "kept"))


async def _make(step: Step, begun: Begun, access: HostAccess, take: str) -> dict[str, Any]:
    """
    Make the directory on each host.

    Returns:
        For hosts with names of their own: which have it, and why others that should do not.
    """
    wanted = await _wanted(step, access)
    if not all(one.is_named for one in wanted):
        await _ask(step, begun, await together(access.reach(one) for one in wanted), take)
        return {}
    reached = await access.reach_some(wanted) if wanted else {}
    before = step.arguments.get("made_on")
    had = [one.name for one in wanted] if before is None else before
    for is_new in (False, True):
        hosts = [
            reached[one.uid]
            for one in wanted
            if one.uid in reached and is_new == (one.name not in had)
        ]
        await _ask(step, begun, hosts, "new" if is_new else take)
    made_on = [
        one.name
        for one in wanted
        if one.uid in reached or (before is not None and one.name in before)
    ]
    lacking = {one.name: "it did not answer" for one in wanted if one.name not in made_on}
    there = {one.name for one in wanted}
    absent = [name for name in step.arguments.get("hosts", ()) if name not in there]
    lacking |= dict.fromkeys(absent, f"fleet {step.arguments['fleet']} does not have this host")
    return {MADE_ON: sorted(made_on, key=natural_order), NOT_ON: lacking}


async def _ask(step: Step, begun: Begun, hosts: Sequence[Host], take: str) -> None:
    path = step.arguments["path"]
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
    if DISK in step.arguments:
        await disks.delete(step, begun, access)
        return
    await _delete(step, begun, await _hosts(step, access))


async def forget(step: Step, begun: Begun, access: HostAccess) -> None:
    """Leave the data where it is; another volume may have its place from now on."""
    await access.unmounted(step.resource.name, step.arguments["fleet"])
    if DISK in step.arguments:
        await disks.release(step, begun, access)


async def withdraw(step: Step, begun: Begun, access: HostAccess) -> dict[str, Any]:
    """
    Keep or delete the data on the hosts that leave the volume, or keep a snapshot, as the plan says.

    Returns:
        `places` as `snapshot` does, and in `left` the hosts whose data stays because their fleet no
        longer has them.
    """
    said = step.arguments
    await access.unmounted(step.resource.name, said["fleet"])
    if said["data"] == "retain":
        return {}
    leaving = [
        one for one in await access.instances(said["fleet"]) if one.name not in said["stays_on"]
    ]
    if "hosts" in said:
        leaving = [one for one in leaving if one.name in said["hosts"]]
    there = {one.name for one in leaving}
    left = [name for name in said.get("hosts", ()) if name not in there]
    hosts = await together(access.reach(one) for one in leaving)
    if said["data"] == "delete":
        await _delete(step, begun, hosts)
        return {"left": left}
    return {"places": await _put_aside(step, begun, hosts), "left": left}


async def snapshot(step: Step, begun: Begun, access: HostAccess) -> dict[str, list[str]]:
    """
    Move the data to a snapshot on every host, where the plan says; only a person removes it.

    Returns:
        `places` where the volume's data lies by now, as declared ones are written.
    """
    await access.unmounted(step.resource.name, step.arguments["fleet"])
    if DISK in step.arguments:
        return await disks.snapshot(step, begun, access)
    return {"places": await _put_aside(step, begun, await _hosts(step, access))}


async def _put_aside(step: Step, begun: Begun, hosts: Sequence[Host]) -> list[str]:
    path, into = step.arguments["path"], step.arguments["into"]
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
    return sorted(places)


async def _delete(step: Step, begun: Begun, hosts: Sequence[Host]) -> None:
    path = step.arguments["path"]
    replies = await together(
        host.remove_volume(
            begun.operation_uid, begun.resource_uid, host.volume_path(path), delete_data=True
        )
        for host in hosts
    )
    _raise_first(replies)


async def _hosts(step: Step, access: HostAccess) -> list[Host]:
    return await together(access.reach(instance) for instance in await _wanted(step, access))


async def _wanted(step: Step, access: HostAccess) -> list[Instance]:
    """The hosts of the fleet that the step names, or all of them."""
    fleet = step.arguments["fleet"]
    there = await _staying(fleet, access)
    if not there:
        raise PermanentError(
            f"fleet {fleet} has no host for volume {step.resource.name}",
            advice="declare at least one node in the fleet",
        )
    named = step.arguments.get("hosts")
    return [one for one in there if named is None or one.name in named]


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
