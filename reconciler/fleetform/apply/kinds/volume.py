"""
A volume's steps: a directory on each host of its fleet.

Making it twice is the same as once, because the host keeps the volume's uid beside the data.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleetform.agents.protocol.messages import Reply
from fleetform.apply.together import together
from fleetform.apply.world import World
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Step
from fleetform.model.ports import Begun
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import Host


async def make(step: Step, begun: Begun, world: World) -> None:
    """A new directory, or one that is empty; what holds data is nobody's to take unasked."""
    await _make(step, begun, world, "new")


async def adopt(step: Step, begun: Begun, world: World) -> None:
    """The directory that is there, whatever is in it."""
    await _make(step, begun, world, "found")


async def update(step: Step, begun: Begun, world: World) -> None:
    """The directory that is this volume already; one that is gone is made only if the plan says so."""
    await _make(step, begun, world, step.arguments.get("take", "kept"))


async def _make(step: Step, begun: Begun, world: World, take: str) -> None:
    path = world.volume_path(step.arguments["path"])
    hosts = await _hosts(step, world)
    replies = await together(
        host.make_volume(
            begun.operation_uid, begun.resource_uid, step.resource.name, path, take=take
        )
        for host in hosts
    )
    _raise_first(replies)


async def remove(step: Step, begun: Begun, world: World) -> None:
    """Delete the data on every host. Asked for by the document and permitted by the plan."""
    path = world.volume_path(step.arguments["path"])
    hosts = await _hosts(step, world)
    replies = await together(
        host.remove_volume(begun.operation_uid, begun.resource_uid, path, delete_data=True)
        for host in hosts
    )
    _raise_first(replies)


async def snapshot(step: Step, begun: Begun, world: World) -> dict[str, list[str]]:
    """
    Put the data aside on every host, where the plan says; nobody but a person removes it.

    Returns:
        `places` where the volume's data lies by now, as declared ones are written.
    """
    path = world.volume_path(step.arguments["path"])
    into = world.volume_path(step.arguments["into"])
    hosts = await _hosts(step, world)
    replies = await together(
        host.snapshot_volume(
            begun.operation_uid, begun.resource_uid, step.resource.name, path, into
        )
        for host in hosts
    )
    _raise_first(replies)
    places = {place for reply in replies for place in reply.body.get("places", (into,))}
    # They differ from the place in the plan in what stands behind it, if at all.
    return {"places": sorted(step.arguments["into"] + one.removeprefix(into) for one in places)}


async def _hosts(step: Step, world: World) -> list[Host]:
    fleet = step.arguments["fleet"]
    instances = await world.instances(fleet)
    wanted = [one for one in instances if one.state is not InstanceState.TERMINATING]
    if not wanted:
        raise PermanentError(
            f"fleet {fleet} has no instance to hold volume {step.resource.name}",
            advice="declare at least one node in the fleet",
        )
    return await together(world.reach(instance) for instance in wanted)


def _raise_first(replies: Sequence[Reply]) -> None:
    for reply in replies:
        if not reply.ok:
            raise PermanentError(reply.message or reply.code)
