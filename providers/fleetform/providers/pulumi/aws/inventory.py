"""
What an environment has in one account and region, by tag: pages of the list calls of EC2.

No state of Pulumi is asked. Things that are being deleted are left out, because they can neither be
adopted nor be proof that something exists.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar

from fleetform.providers.pulumi.aws.clients import cloud_failures, service_client
from fleetform.providers.pulumi.aws.program import ADDRESS, ENVIRONMENT_TAG, AwsAccount
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG, Existing

__all__ = ["AwsInventory", "ListedInstance", "ec2_client"]

T = TypeVar("T")

_ENDED = {"terminated", "shutting-down", "deleting", "deleted"}


@dataclass(frozen=True, slots=True)
class _Listing:
    """A list call: the type of its things, and where their facts are in the answer."""

    type: str
    operation: str
    things: str
    id: str
    born: str = ""


_LISTINGS = (
    _Listing(
        "aws:ec2/instance:Instance", "describe_instances", "Instances", "InstanceId", "LaunchTime"
    ),
    _Listing("aws:ebs/volume:Volume", "describe_volumes", "Volumes", "VolumeId", "CreateTime"),
    _Listing(
        "aws:ec2/securityGroup:SecurityGroup",
        "describe_security_groups",
        "SecurityGroups",
        "GroupId",
    ),
    _Listing(
        "aws:ec2/launchTemplate:LaunchTemplate",
        "describe_launch_templates",
        "LaunchTemplates",
        "LaunchTemplateId",
        "CreateTime",
    ),
    _Listing(ADDRESS, "describe_addresses", "Addresses", "AllocationId"),
    # The plugin knows these two by their names.
    _Listing("aws:ec2/keyPair:KeyPair", "describe_key_pairs", "KeyPairs", "KeyName"),
    _Listing(
        "aws:ec2/placementGroup:PlacementGroup",
        "describe_placement_groups",
        "PlacementGroups",
        "GroupName",
    ),
)


@dataclass(frozen=True, slots=True)
class ListedInstance:
    """An instance as EC2 lists it, with its state: one that is `shutting-down` may still run its jobs."""

    id: str
    tags: Mapping[str, str]
    address: str
    state: str
    created_at_ms: int
    terms: Mapping[str, Any]
    """Its type, its image, its zone, and `spot` if it is one, as an endpoint has them."""


class AwsInventory:
    """Implements `recovery.inventory.Inventory`."""

    def __init__(self, client: Any, environment_uid: str) -> None:
        self._client = client
        self._filters = [{"Name": f"tag:{ENVIRONMENT_TAG}", "Values": [environment_uid]}]

    async def existing(self) -> Sequence[Existing]:
        """List everything of the environment, the oldest of each type first."""
        return await asyncio.to_thread(self._mapped, self._list)

    async def instances(self) -> Sequence[ListedInstance]:
        """List every instance of the environment, also those that have ended, by the time of their creation."""
        return await asyncio.to_thread(self._mapped, self._instances)

    async def ended(self) -> Sequence[Existing]:
        """List the instances that have ended; EC2 does so for about an hour."""
        return [
            Existing(_LISTINGS[0].type, one.id, one.tags)
            for one in await self.instances()
            if one.state in _ENDED and IDENTITY_TAG in one.tags
        ]

    def _mapped(self, call: Callable[[], T]) -> T:
        with cloud_failures(self._client.meta.region_name):
            return call()

    def _instances(self) -> list[ListedInstance]:
        things = sorted(self._things(_LISTINGS[0]), key=itemgetter("LaunchTime"))
        return [
            ListedInstance(
                one["InstanceId"],
                _tags(one),
                one.get("PublicIpAddress") or one.get("PrivateIpAddress") or "",
                _state(one),
                _milliseconds(one["LaunchTime"]),
                _terms(one),
            )
            for one in things
        ]

    async def terminate(self, ids: Sequence[str]) -> None:
        """
        Terminate instances.

        Raises:
            ProviderError: EC2 refuses.
        """
        await asyncio.to_thread(
            self._mapped, lambda: self._client.terminate_instances(InstanceIds=list(ids))
        )

    def _list(self) -> list[Existing]:
        return [one for listing in _LISTINGS for one in self._existing(listing)]

    def _existing(self, listing: _Listing) -> Iterator[Existing]:
        things = [one for one in self._things(listing) if _state(one) not in _ENDED]
        if listing.born:
            things.sort(key=lambda one: one[listing.born])
        for one in things:
            created_at_ms = _milliseconds(one[listing.born]) if listing.born else None
            yield Existing(listing.type, one[listing.id], _tags(one), created_at_ms)

    def _things(self, listing: _Listing) -> list[Mapping[str, Any]]:
        if self._client.can_paginate(listing.operation):
            pages = self._client.get_paginator(listing.operation).paginate(Filters=self._filters)
        else:
            pages = [getattr(self._client, listing.operation)(Filters=self._filters)]
        found: list[Mapping[str, Any]] = []
        for page in pages:
            # Instances come in groups by the call that created them.
            for part in page.get("Reservations", [page]):
                found += part[listing.things]
        return found


def ec2_client(account: AwsAccount) -> Any:
    """Return a client of EC2; see `clients.service_client`."""
    return service_client(account, "ec2")


def _tags(thing: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", ())}


def _terms(instance: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "instance_type": instance["InstanceType"],
        "image": instance["ImageId"],
        "zone": instance["Placement"]["AvailabilityZone"],
        **({"spot": True} if instance.get("InstanceLifecycle") == "spot" else {}),
    }


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _state(thing: Mapping[str, Any]) -> str:
    state = thing.get("State")
    return str(state.get("Name") if isinstance(state, Mapping) else state)
