"""
A fleet's steps: instances are reached, or released, side by side.

Only the removal of the whole fleet waits for hosts that leave. Those of a fleet that shrinks
may run work for days: their rows say that they leave, and the controller releases them.
"""

from __future__ import annotations

from fleetform.apply.host_access import HostAccess, together
from fleetform.model.apply import Begun
from fleetform.model.instance import LOCAL, Instance, InstanceState
from fleetform.model.plan import Step
from fleetform.providers.contract.errors import PermanentError


async def make(step: Step, begun: Begun, access: HostAccess) -> None:
    """
    Create the instances of clouds whose rows the intent has written, and reach all others but known hosts that are silent.

    Of other machines one that cannot be reached does not keep the others from work: the step is
    done with those that answer, and fails only where none does.
    """
    if shared := step.arguments.get("shared"):
        # First: hosts that exist may be reached from then on.
        await access.update_shared(step.resource.name, shared)
    instances = [
        instance
        for instance in await access.instances(step.resource.name)
        if not _leaving(instance) and not _is_silent(instance)
    ]
    await _buy(access, step.resource.name)
    shares = [one for one in instances if one.provider == LOCAL]
    await together(access.reach(instance) for instance in shares)
    elsewhere = [one for one in instances if one.provider != LOCAL and not one.is_bought]
    await access.reach_some(elsewhere)


async def _buy(access: HostAccess, fleet: str) -> None:
    """
    Create the instances of clouds, by one offer after the other.

    The step does not wait for their first boot, nor for capacity where the fleet retries: instances join when their agents answer.
    """
    waiting: set[str] = set()
    while missing := [
        one
        for one in await access.instances(fleet)
        if one.is_bought and not one.is_created and not _leaving(one) and one.uid not in waiting
    ]:
        created = await together(access.create(one) for one in missing)
        waiting.update(
            one.uid for one, is_created in zip(missing, created, strict=True) if not is_created
        )


update = make
"""Those that are there already are reached again, which changes nothing."""


async def adopt(step: Step, begun: Begun, access: HostAccess) -> None:
    """Reach the hosts that the intent has found; it has found none if the fleet has none."""
    if not await access.instances(step.resource.name):
        raise PermanentError(
            f"no host of this environment was released, so fleet {step.resource.name} has none to"
            " adopt",
            advice=f"remove `{step.resource}` from `import:`; then the fleet is created",
        )
    await make(step, begun, access)


async def remove(step: Step, begun: Begun, access: HostAccess) -> None:
    """Let every instance go; the intent has marked them terminating."""
    instances = await access.instances(step.resource.name)
    await together(access.depart(instance) for instance in instances if _leaving(instance))
    if cloud := step.arguments.get("cloud"):
        await access.forget_fleet(cloud, step.resource.name)


def _is_silent(instance: Instance) -> bool:
    """Whether a host of another machine, which was reached before, does not answer now."""
    # A machine that is off must not keep the others from a change of their fleet: the manager
    # goes on trying to reach it, and `status` says that it is silent.
    is_known = bool(instance.install_id) and instance.provider != LOCAL
    return is_known and instance.state is InstanceState.UNREACHABLE


def _leaving(instance: Instance) -> bool:
    return instance.state is InstanceState.TERMINATING
