"""
Lists the instances that clouds have under an environment's uid: one list for each account and region.

A cloud that does not answer, or for which this machine has no credentials, proves nothing: it is named, and its
instances are compared by what their agents answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fleetform.model.existence import CloudPlace, is_known, place_of
from fleetform.model.instance import CLOUDS, request_of
from fleetform.plan.kinds.fleet import elsewhere
from fleetform.providers.contract.errors import ProviderError
from fleetform.providers.contract.hosts import HostCreator, InstanceRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetform.model.live import Live
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import InstanceSeen

__all__ = ["Listed", "list_instances", "list_unknown", "terminate"]


@dataclass(frozen=True, slots=True)
class Listed:
    """All instances by account and region; `problems` say which ones were not listed, and why."""

    clouds: Mapping[CloudPlace, Sequence[InstanceSeen]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def list_instances(live: Live, hosts: HostProvider) -> Listed:
    """List each account and region in which a fleet of the ledger has instances, or would have them."""
    requests = {place_of(one.provider, one.endpoint): one for one in _requests(live)}
    if not requests or not isinstance(hosts, HostCreator):
        return Listed()
    answers = await asyncio.gather(
        *(hosts.listed(live.environment_uid, one) for one in requests.values()),
        return_exceptions=True,
    )
    clouds: dict[CloudPlace, Sequence[InstanceSeen]] = {}
    problems = []
    for place, answer in zip(requests, answers, strict=True):
        if isinstance(answer, ProviderError):
            problems.append(f"instances in {place.region} are not listed: {answer}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            clouds[place] = answer
    return Listed(clouds, tuple(problems))


async def list_unknown(live: Live, hosts: HostProvider) -> tuple[tuple[InstanceSeen, ...], Listed]:
    """Return the instances that exist and that the ledger does not have, with the whole list."""
    listed = await list_instances(live, hosts)
    rows = {one.uid: one for one in live.instances}
    unknown = [
        one
        for place in sorted(listed.clouds)
        for one in listed.clouds[place]
        if one.alive and not one.is_ending and not is_known(one, rows)
    ]
    return tuple(unknown), listed


async def terminate(
    hosts: HostProvider, instances: Sequence[InstanceSeen], report: Callable[[str], None]
) -> None:
    """
    Terminate instances one after the other.

    Raises:
        ProviderError: One of them may still exist, and those after it were not tried.
    """
    assert isinstance(hosts, HostCreator), "only clouds list instances"
    for one in instances:
        await hosts.terminate(one, report)


def _requests(live: Live) -> list[InstanceRequest]:
    found = [
        InstanceRequest("", key.name, key.name, {}, **source)
        for key, row in live.resources.items()
        if key.kind == "fleet" and (source := elsewhere(row.parsed)).get("provider") in CLOUDS
    ]
    return [*found, *(request_of(one) for one in live.instances if one.is_bought)]
