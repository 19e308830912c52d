"""
Asks hosts whether they answer, before a plan removes their fleet.

The ledger knows nothing of what has become of hosts while no controller ran. A plan is blocked by a
silent host, so one that is back must not block it, and one that has died since must.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from fleetform.model.figures import first_of
from fleetform.model.instance import LOCAL, InstanceState, request_of
from fleetform.spec.names import natural_order

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.live import Live
    from fleetform.model.plan import Permissions
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.spec.desired import Desired

__all__ = ["with_asked_hosts"]


_NOTICE_SECONDS = 2.0
"""How long hosts may take before a notice names them."""


def with_asked_hosts(
    workspace: Workspace,
    desired: Desired,
    permissions: Permissions,
    live: Live,
    *,
    lost: Collection[str],
    notice: Callable[[str], None],
) -> Live:
    """
    Return what is live, with each host of a fleet that goes as it is now: silent, or ready.

    Hosts named in `lost` are gone for good, and not asked. `notice` says which ones are waited for.
    """
    fleets = {key.name for key in desired.resources if key.kind == "fleet"}
    going = [
        one
        for one in live.instances
        if one.name not in lost
        and (permissions.destroy or one.fleet not in fleets)
        # Instances of clouds are deleted with what runs there, whether they answer or not.
        and not one.is_bought
    ]
    # A controller hears from its hosts all the time. Plans that do not destroy all are also made where
    # no host can be reached, such as in CI.
    asks_all = permissions.destroy and any(map(_was_reached, going)) and workspace.manager() is None
    asked = [one for one in going if _may_be_silent(one) or (asks_all and _was_reached(one))]
    if not asked:
        return live
    # Here: most plans remove no fleet, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.app.ledger import host_provider

    answers = asyncio.run(_ask(host_provider(workspace), live.environment_uid, asked, notice))
    instances = tuple(
        _as_answered(one, answers[one.uid]) if one.uid in answers else one for one in live.instances
    )
    return dataclasses.replace(live, instances=instances)


def _may_be_silent(instance: Instance) -> bool:
    is_recovering = instance.state is InstanceState.RECOVERING and _was_reached(instance)
    return instance.is_silent or is_recovering


def _was_reached(instance: Instance) -> bool:
    return instance.provider != LOCAL and bool(instance.install_id)


def _as_answered(instance: Instance, problem: str) -> Instance:
    if not problem and not instance.is_silent:
        return instance
    state = InstanceState.UNREACHABLE if problem else InstanceState.READY
    if instance.state is InstanceState.TERMINATING:
        state = instance.state
    return dataclasses.replace(instance, message=problem, state=state)


async def _ask(
    hosts: HostProvider,
    environment_uid: str,
    asked: Sequence[Instance],
    notice: Callable[[str], None],
) -> dict[str, str]:
    """Return for each instance, by uid, why its host cannot be reached; empty where it answers."""
    import asyncio

    asking = {
        one.uid: asyncio.ensure_future(_problem(hosts, environment_uid, one)) for one in asked
    }
    _, late = await asyncio.wait(asking.values(), timeout=_NOTICE_SECONDS)
    if late:
        names = [one.name for one in asked if asking[one.uid] in late]
        notice(f"waiting for host {first_of(sorted(names, key=natural_order), 3)} to answer")
    return {uid: await answer for uid, answer in asking.items()}


async def _problem(hosts: HostProvider, environment_uid: str, instance: Instance) -> str:
    """Say why a host cannot be reached, or lacks the instance; after a reboot no agent runs there."""
    from fleetform.providers.contract.errors import ProviderError

    try:
        found = await hosts.instances_on(environment_uid, request_of(instance))
    except ProviderError as error:
        return str(error).removeprefix(f"instance {instance.name}: ")
    is_there = any(one.uid == instance.uid for one in found)
    # Nothing runs on an instance of a cloud that does not exist, and its release finds nothing to do.
    return "" if is_there or instance.is_bought else "the folder of its agent is gone"
