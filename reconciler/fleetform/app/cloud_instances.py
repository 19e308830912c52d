"""
Lists the instances that clouds have under an environment's uid: one list for each account and region.

A cloud that does not answer, or for which this machine has no credentials, proves nothing: it is named, and its
instances are compared by what their agents answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fleetform.app.problems import Problem
from fleetform.model.existence import CloudPlace, is_known, place_of
from fleetform.model.instance import CLOUDS, request_of
from fleetform.plan.kinds.fleet import elsewhere
from fleetform.providers.contract.errors import ProviderError, with_advice
from fleetform.providers.contract.hosts import HostCreator, ImageSource, InstanceRequest
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.desired import ResourceKey

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleetform.model.instance import Instance
    from fleetform.model.live import Live
    from fleetform.providers.contract.hosts import HostProvider
    from fleetform.providers.contract.observed import InstanceSeen
    from fleetform.spec.desired import Desired

__all__ = [
    "Listed",
    "adopt",
    "choose",
    "list_instances",
    "list_unknown",
    "newest_images",
    "terminate",
]


@dataclass(frozen=True, slots=True)
class Listed:
    """All instances by account and region; `problems` say which ones were not listed, why, and what to do."""

    clouds: Mapping[CloudPlace, Sequence[InstanceSeen]] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


async def list_instances(live: Live, hosts: HostProvider, desired: Desired | None = None) -> Listed:
    """List each account and region in which a fleet of the ledger, or of `desired`, has instances or would have them."""
    requests = {place_of(one.provider, one.endpoint): one for one in _requests(live, desired)}
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
            why = with_advice(answer).removeprefix(f"{place.region}: ")
            problems.append(f"instances in {place.region} are not listed: {why}")
        elif isinstance(answer, BaseException):
            raise answer
        else:
            clouds[place] = answer
    return Listed(clouds, tuple(problems))


async def newest_images(live: Live, hosts: HostProvider) -> dict[str, str]:
    """
    Ask what image a host of each fleet would boot from now, by the uid of an instance that the fleet has.

    A fleet whose image is named by its id, or whose cloud does not answer, is left out.
    """
    if not isinstance(hosts, ImageSource):
        return {}
    requests = {
        one.name: _as_declared(live, one) for one in live.instances if _has_image(live, one)
    }
    # One for each fleet: its hosts boot from the same image.
    asked = list({one.fleet: one for one in requests.values()}.values())
    answers = await asyncio.gather(
        *(hosts.newest_image(one) for one in asked), return_exceptions=True
    )
    found = {}
    for one, answer in zip(asked, answers, strict=True):
        if isinstance(answer, str):
            found[one.uid] = answer
        elif not isinstance(answer, ProviderError):
            raise answer
    return {uid: image for uid, image in found.items() if image}


def _has_image(live: Live, instance: Instance) -> bool:
    fleet = live.resources.get(ResourceKey("fleet", instance.fleet))
    is_there = instance.is_bought and instance.is_created and "image" in instance.endpoint
    return is_there and fleet is not None and not fleet.operation


def _as_declared(live: Live, instance: Instance) -> InstanceRequest:
    """Return the request of an instance with the image that its fleet declares, in place of the one that it has."""
    request = request_of(instance)
    said = live.resources[ResourceKey("fleet", instance.fleet)].parsed.get("aws", {})
    endpoint = {**request.endpoint, "image": said.get("image", "")}
    return replace(request, endpoint=endpoint)


async def list_unknown(
    live: Live, hosts: HostProvider, desired: Desired | None = None
) -> tuple[tuple[InstanceSeen, ...], Listed]:
    """
    Return the instances that exist and that the ledger does not have, with the whole list.

    Each has the endpoint of a new host of its fleet, with what it is in place of what an offer says.
    """
    listed = await list_instances(live, hosts, desired)
    declared = {one.fleet: one.endpoint for one in _requests(live, desired) if not one.uid}
    rows = {one.uid: one for one in live.instances}
    unknown = [
        replace(one, endpoint={**declared.get(one.fleet, {}), **_facts(one)})
        for place in sorted(listed.clouds)
        for one in listed.clouds[place]
        if one.alive and not one.is_ending and not is_known(one, rows)
    ]
    return tuple(unknown), listed


def choose(
    ids: Sequence[str], unknown: Sequence[InstanceSeen], listed: Listed
) -> list[InstanceSeen]:
    """
    Return the unknown instances with these ids of their clouds.

    Raises:
        Problem: One of them is not among those, or its cloud was not asked.
    """
    by_id = {str(one.endpoint["id"]): one for one in unknown}
    for cloud_id in ids:
        if cloud_id in by_id:
            continue
        if listed.problems:
            raise Problem(
                f"whether {cloud_id} is an unknown instance is not known: {'; '.join(listed.problems)}",
                "nothing was changed; run the same command again then",
            )
        raise Problem(
            f"{cloud_id} is not an unknown instance of this environment",
            "`fleetform drift` lists the unknown ones; lower `nodes` to delete one that the ledger has",
        )
    return [by_id[cloud_id] for cloud_id in dict.fromkeys(ids)]


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


async def adopt(
    instances: Sequence[InstanceSeen], hosts: HostProvider, report: Callable[[str], None]
) -> dict[str, InstanceSeen]:
    """
    Record instances that the ledger does not know where their provider records those that it created; return them by uid.

    Raises:
        ProviderError: Some of them are not recorded; asking again continues.
    """
    assert isinstance(hosts, HostCreator), "only clouds list instances"
    return {one.uid: one for one in await hosts.adopt(instances, report)}


_OWN = ("account", "region", "instance_type", "zone", "spot", "image", "stack", "id", "hostname")


def _facts(instance: InstanceSeen) -> dict[str, Any]:
    return {name: instance.endpoint[name] for name in _OWN if name in instance.endpoint}


def _requests(live: Live, desired: Desired | None) -> list[InstanceRequest]:
    found = [request_of(one) for one in live.instances if one.is_bought]
    documents = [(key, row.parsed) for key, row in live.resources.items() if key.kind == "fleet"]
    if desired is not None:
        documents += [(key, one.document) for key, one in desired.resources.items()]
    for key, document in documents:
        if key.kind == "fleet" and provider_of(document) in CLOUDS:
            source = elsewhere(document)
            found += [
                InstanceRequest(
                    "", key.name, key.name, {},
                    provider=source["provider"], endpoint={**source["endpoint"], "region": region},
                )
                for region in document["regions"]
            ]  # fmt: skip
    return found
