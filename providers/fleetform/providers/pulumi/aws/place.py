"""
What a fleet declares of its hosts on AWS, as a step carries it: `InstanceRequest.endpoint` as a value.

Every choice is made when it is planned: account, region, type, image. A host keeps the place that it was created in, whatever
is declared later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.batches import SHARED_SUFFIX
from fleetform.providers.pulumi.aws.program import AwsAccount, HostTemplate, SharedRequest
from fleetform.spec.canonical import digest

__all__ = ["account_of", "orphan_seconds", "record_of", "shared_of", "stack_of"]

_FLEET_CHARACTERS = 60
"""Of the name of a fleet in that of a stack, which has 100 at most."""


def stack_of(request: InstanceRequest) -> str:
    """
    Return the name of the stack of a host.

    The step that brings in hosts gives one to all of them. A host that takes the place of another one has its own.
    """
    said = request.endpoint.get("stack")
    return str(said) if said else f"{request.fleet[:_FLEET_CHARACTERS]}-{request.uid[-12:]}"


def orphan_seconds(endpoint: Mapping[str, Any]) -> int | None:
    """Return after how long without a controller and jobs a host shuts down; None: never."""
    seconds = int(endpoint.get("orphan_after", -1))
    return None if seconds < 0 else seconds


def account_of(endpoint: Mapping[str, Any], environment_uid: str, service: str) -> AwsAccount:
    """Return the account; `service` is a URL in place of those of AWS, or empty."""
    return AwsAccount(endpoint["region"], endpoint["account"], environment_uid, endpoint=service)


def shared_of(request: InstanceRequest, public_key: str) -> SharedRequest:
    """Return what the host shares with others of its fleet that were declared alike."""
    name = _shared_name(request)
    return SharedRequest(
        uid=digest(name)[:32],
        fleet=request.fleet,
        operation_uid=name,
        ssh_from=tuple(request.endpoint["ssh_from"]),
        public_key=public_key,
        vpc=request.endpoint.get("vpc", ""),
        is_cluster=request.endpoint.get("placement") == "cluster",
    )


def record_of(
    request: InstanceRequest, account: AwsAccount, image: str, efa_cards: int = 0
) -> BatchRecord:
    """
    Return the batch of a host, with this host alone.

    `image` is the id of what it boots from, `efa_cards` how many interfaces of EFA it gets.
    """
    place = request.endpoint
    template = HostTemplate(
        instance_type=place["instance_type"],
        image=image,
        root_gb=place["root_gb"],
        subnet=place.get("subnet", ""),
        zone=place.get("zone", ""),
        public_address=place.get("public_ips", True),
        profile=place.get("iam_instance_profile", ""),
        reservation=place.get("reservation", ""),
        network_cards=max(efa_cards, 1),
        efa=efa_cards > 0,
        disk=place.get("root_disk", {}),
        tags=place.get("tags", {}),
        groups=tuple(place.get("security_groups", ())),
        spot=place.get("spot", False),
    )
    return BatchRecord(
        stack=stack_of(request),
        fleet=request.fleet,
        account=account,
        template=template,
        shared=_shared_name(request),
        hosts={request.uid: request.name},
    )


_SHARED_FIELDS = ("account", "region", "vpc", "placement")


def _shared_name(request: InstanceRequest) -> str:
    # By content: hosts that were declared otherwise keep the parts that they were created with. Who may connect is changed
    # in place.
    said = {name: request.endpoint.get(name) for name in _SHARED_FIELDS}
    mark = digest({**said, "fleet": request.fleet})[:8]
    return f"{request.fleet[:_FLEET_CHARACTERS]}-{mark}{SHARED_SUFFIX}"
