"""A fleet's steps: instances are reached, or released, side by side."""

from __future__ import annotations

import asyncio

from fleetform.apply.world import World
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import Step
from fleetform.model.ports import Begun


async def make(step: Step, begun: Begun, world: World) -> None:
    """Reach every instance whose row the intent has written."""
    instances = await world.instances(step.resource.name)
    await asyncio.gather(
        *(world.reach(instance) for instance in instances if not _leaving(instance))
    )


async def update(step: Step, begun: Begun, world: World) -> None:
    """Reach what is wanted first and release the rest after, so that capacity never dips."""
    await make(step, begun, world)
    await remove_leaving(step.resource.name, world)


async def remove(step: Step, begun: Begun, world: World) -> None:
    """Release every instance; the intent has marked them terminating."""
    await remove_leaving(step.resource.name, world)


async def remove_leaving(fleet: str, world: World) -> None:
    instances = await world.instances(fleet)
    await asyncio.gather(*(world.release(instance) for instance in instances if _leaving(instance)))


def _leaving(instance: Instance) -> bool:
    return instance.state is InstanceState.TERMINATING
