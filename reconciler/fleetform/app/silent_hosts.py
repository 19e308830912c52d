"""
Asks hosts that were silent, before a plan removes their fleet.

The ledger knows since when a host is silent, and nothing of what has become of it while no controller
ran. A plan is blocked by a silent host, so a host that is back must not block it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from fleetform.model.instance import InstanceState, request_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleetform.app.workspace import Workspace
    from fleetform.model.instance import Instance
    from fleetform.model.live import Live
    from fleetform.model.plan import Permissions
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.spec.desired import Desired

__all__ = ["with_asked_hosts"]


def with_asked_hosts(
    workspace: Workspace, desired: Desired, permissions: Permissions, live: Live
) -> Live:
    """Return what is live, with the silent hosts that answer now among those that are ready."""
    fleets = {key.name for key in desired.resources if key.kind == "fleet"}
    silent = [
        one
        for one in live.instances
        if one.is_silent and (permissions.destroy or one.fleet not in fleets)
    ]
    if not silent:
        return live
    # Here: most plans remove no fleet, and need neither a loop nor what drives hosts.
    import asyncio

    from fleetform.app.ledger import host_provider

    back = asyncio.run(_that_answer(host_provider(workspace), live.environment_uid, silent))
    instances = tuple(
        dataclasses.replace(one, message="", state=_state_of(one)) if one.uid in back else one
        for one in live.instances
    )
    return dataclasses.replace(live, instances=instances)


async def _that_answer(
    hosts: HostProvider, environment_uid: str, silent: Sequence[Instance]
) -> set[str]:
    import asyncio

    answers = await asyncio.gather(*(_answers(hosts, environment_uid, one) for one in silent))
    return {one.uid for one, answer in zip(silent, answers, strict=True) if answer}


async def _answers(hosts: HostProvider, environment_uid: str, instance: Instance) -> bool:
    """Tell whether a host can be reached and has the instance; after a reboot no agent runs there."""
    from fleetform.providers.contract.errors import ProviderError

    try:
        found = await hosts.instances_on(environment_uid, request_of(instance))
    except ProviderError:
        return False
    return any(one.uid == instance.uid for one in found)


def _state_of(instance: Instance) -> InstanceState:
    is_leaving = instance.state is InstanceState.TERMINATING
    return InstanceState.TERMINATING if is_leaving else InstanceState.READY
