"""
What an account lacks for a batch of hosts, found before the first of them is created.

EC2 would refuse each host for the same reason, some after minutes. What the credentials may not ask is no obstacle: the policy
that fleetform needs stays small.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from fleetform.providers.contract.errors import NoCapacity, PermanentError, QuotaExceeded
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.clients import ServiceClients, cloud_failures
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    DiskRequest,
    HostTemplate,
    SharedRequest,
)
from fleetform.providers.pulumi.engine.failures import NO_CAPACITY_SECONDS

__all__ = ["quota_code", "require_disk", "require_ready"]

_STANDARD = ("L-1216C47A", "L-34B43A08")
_GRAPHICS = ("L-DB2E81BA", "L-3819A6DF")
_QUOTAS = {
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), _STANDARD),
    **dict.fromkeys(("g", "gr", "vt"), _GRAPHICS),
    "p": ("L-417A185B", "L-7212CCBC"),
    "inf": ("L-1945791B", "L-B5D1601B"),
    "trn": ("L-2C3B7624", "L-6B0D517C"),
    "dl": ("L-6E869C2A", "L-85EED4F7"),
    "f": ("L-74FC7D96", "L-88CF9481"),
    "x": ("L-7295265B", "L-E3A00192"),
}
"""Codes of the quotas of vCPUs by the letters of a type, on demand and spot."""

_P5_ON_SPOT = "L-C4BD4855"

_ADDRESSES = "L-0263D0A3"
"""Code of the quota of Elastic IP addresses: 5 a region, until AWS raises it."""

_SPOT_ROLE = "AWSServiceRoleForEC2Spot"
_RUNNING = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]


def require_ready(record: BatchRecord, shared: SharedRequest, replaced: int = 0) -> None:
    """
    Make sure that the account could have the hosts of a batch, and what they share.

    `replaced` of them replace hosts that leave, so the quota must have room only for the others.

    Raises:
        QuotaExceeded: Its quota of vCPUs is too small.
        NoCapacity: The type is not offered in the zone, or the reservation has no room; another offer may do.
        PermanentError: It lacks a network, an image, a reservation or a role, or the credentials may not pass the role.
        ProviderError: AWS does not answer.
    """
    clients, template = ServiceClients(record.account), record.template
    zone = _require_network(clients, template, shared.vpc) or template.zone
    _require_zone(clients, template.zone, "`availability_zones` of the fleet")
    _require_offered(clients, template.instance_type, zone)
    _require_image(clients, template)
    more = max(len(record.hosts) - replaced, 0)
    if template.reservation:
        _require_reservation(clients, template, zone, needs_room=more > 0)
    if template.spot:
        _require_spot_role(clients)
    if template.profile:
        _require_profile(clients, template)
    if more:
        _require_vcpus(clients, template, more)
    if more and template.elastic_address:
        _require_addresses(clients, more)


def require_disk(account: AwsAccount, disk: DiskRequest, name: str) -> None:
    """
    Make sure that a disk could be created; `name` is that of its volume.

    Raises:
        PermanentError: There is no such zone, or no such snapshot, or the snapshot is larger.
        ProviderError: AWS does not answer.
    """
    clients = ServiceClients(account)
    _require_zone(clients, disk.zone, f"`availability_zone` of volume {name}")
    if not disk.snapshot:
        return
    found = _asked(clients, "ec2", "describe_snapshots", SnapshotIds=[disk.snapshot])
    if found is None:
        raise PermanentError(
            f"{_where(clients)} has no snapshot {disk.snapshot}, and none is shared with it",
            advice=f"correct `aws.snapshot_id` of volume {name}, or copy or share the snapshot",
        )
    for one in found.get("Snapshots", ()):
        if one["State"] != "completed":
            raise PermanentError(
                f"snapshot {disk.snapshot} is {one['State']}, and a disk needs one that is completed",
                advice="wait until `aws ec2 describe-snapshots` shows it as completed, or name another one",
            )
        if one["VolumeSize"] > disk.size_gb:
            raise PermanentError(
                f"snapshot {disk.snapshot} is of a disk of {one['VolumeSize']} GB, and volume {name} has {disk.size_gb} GB",
                advice=f"write `size: {one['VolumeSize']}GB` or more",
            )


def quota_code(instance_type: str, *, spot: bool) -> str:
    """Return the code of the quota that an instance counts for; empty: it has one of its own."""
    if spot and instance_type.startswith("p5"):
        return _P5_ON_SPOT
    letters = re.match("[a-z]*", instance_type)
    codes = _QUOTAS.get(letters[0] if letters else "")
    return codes[spot] if codes else ""


def _require_vcpus(clients: ServiceClients, template: HostTemplate, count: int) -> None:
    code = quota_code(template.instance_type, spot=template.spot)
    if not code:
        return
    running = _running_types(clients, spot=template.spot)
    if running is None:
        return
    counted = Counter(
        {
            one: number
            for one, number in running.items()
            if quota_code(one, spot=template.spot) == code
        }
    )
    sizes = _vcpus(clients, {template.instance_type, *counted})
    used = sum(sizes.get(one, 0) * number for one, number in counted.items())
    needed = count * sizes.get(template.instance_type, 0)
    _require_quota(
        clients, code, needed, used,
        f"{count} {template.instance_type} need {needed} vCPUs",
        "declare fewer hosts or another type",
    )  # fmt: skip


def _require_addresses(clients: ServiceClients, count: int) -> None:
    found = _asked(clients, "ec2", "describe_addresses")
    if not found:
        return
    used = len(found["Addresses"])
    _require_quota(
        clients, _ADDRESSES, count, used,
        f"Elastic IP addresses needed: {count}, one for each host with several network interfaces",
        "set `aws.public_ips: false` and reach the hosts through `aws.proxy_jump`",
    )  # fmt: skip


def _require_quota(
    clients: ServiceClients, code: str, needed: int, used: int, need: str, otherwise: str
) -> None:
    account = clients.account
    quota = _asked(
        clients, "service-quotas", "get_service_quota", ServiceCode="ec2", QuotaCode=code
    )
    if not quota:
        return
    limit = int(quota["Quota"]["Value"])
    if used + needed > limit:
        problem = QuotaExceeded(
            f"{account.region}: {need}, and the quota `{quota['Quota']['QuotaName']}` ({code}) of account"
            f" {account.id} is {limit}, of which {used} are used",
            advice=f"ask for a higher quota in Service Quotas of AWS, or {otherwise}",
        )
        problem.reason = f"quota used up ({code})"
        raise problem


def _running_types(clients: ServiceClients, *, spot: bool) -> Counter[str] | None:
    """Count the instances of the account by type, on demand or spot; None: it may not be asked."""
    pages = _pages(clients, "describe_instances", "Reservations", Filters=_RUNNING)
    if pages is None:
        return None
    instances = [one for row in pages for one in row["Instances"]]
    return Counter(
        one["InstanceType"] for one in instances if (one.get("InstanceLifecycle") == "spot") == spot
    )


def _vcpus(clients: ServiceClients, types: set[str]) -> dict[str, int]:
    rows = _pages(clients, "describe_instance_types", "InstanceTypes", InstanceTypes=sorted(types))
    return {one["InstanceType"]: int(one["VCpuInfo"]["DefaultVCpus"]) for one in rows or ()}


def _where(clients: ServiceClients) -> str:
    return f"account {clients.account.id} in {clients.account.region}"


def _require_network(clients: ServiceClients, template: HostTemplate, declared: str) -> str:
    """
    The VPC, the subnet and the security groups exist and belong together; `declared`: the id of the VPC, or empty.

    Returns the zone of the subnet; empty: the fleet names none.
    """
    zone, where = "", _where(clients)
    vpc = _vpc(clients, declared, where)
    if template.subnet:
        found = _asked(clients, "ec2", "describe_subnets", SubnetIds=[template.subnet])
        if found is None:
            raise PermanentError(
                f"{where} has no subnet {template.subnet}",
                advice="correct `aws.subnet` of the fleet, or leave it out for the default one of each zone",
            )
        for one in found.get("Subnets", ()):
            _require_in_vpc(f"subnet {template.subnet}", one["VpcId"], vpc, "aws.subnet")
            zone = one["AvailabilityZone"]
            if template.zone and zone != template.zone:
                raise PermanentError(
                    f"subnet {template.subnet} is in {zone}, and the hosts are in {template.zone}",
                    advice="make `aws.subnet` and `availability_zones` of the fleet name one zone",
                )
    for group in template.groups:
        found = _asked(clients, "ec2", "describe_security_groups", GroupIds=[group])
        if found is None:
            raise PermanentError(
                f"{where} has no security group {group}",
                advice="correct `aws.security_groups` of the fleet, or create the group",
            )
        for one in found.get("SecurityGroups", ()):
            _require_in_vpc(f"security group {group}", one["VpcId"], vpc, "aws.security_groups")
    return zone


def _vpc(clients: ServiceClients, declared: str, where: str) -> str:
    """Return the id of the VPC; empty: the credentials may not ask."""
    if not declared:
        default = [{"Name": "is-default", "Values": ["true"]}]
        found = _asked(clients, "ec2", "describe_vpcs", Filters=default)
        if found and not found["Vpcs"]:
            raise PermanentError(
                f"{where} has no default VPC",
                advice="set `aws.vpc` and `aws.subnet` of the fleet, or run `aws ec2 create-default-vpc` once",
            )
        return found["Vpcs"][0]["VpcId"] if found else ""
    if _asked(clients, "ec2", "describe_vpcs", VpcIds=[declared]) is None:
        raise PermanentError(
            f"{where} has no VPC {declared}",
            advice="correct `aws.vpc` of the fleet, or leave it out for the default VPC",
        )
    return declared


def _require_in_vpc(what: str, its: str, vpc: str, field: str) -> None:
    if vpc and its != vpc:
        raise PermanentError(
            f"{what} is in VPC {its}, and the hosts are in {vpc}",
            advice=f"make `aws.vpc` and `{field}` of the fleet name one VPC",
        )


def _require_zone(clients: ServiceClients, zone: str, field: str) -> None:
    if not zone:
        return
    found = _asked(clients, "ec2", "describe_availability_zones") or {}
    zones = sorted(one["ZoneName"] for one in found.get("AvailabilityZones", ()))
    if zones and zone not in zones:
        raise PermanentError(
            f"{_where(clients)} has no availability zone {zone}",
            advice=f"correct {field}: there are {', '.join(zones)}",
        )


def _require_offered(clients: ServiceClients, instance_type: str, zone: str) -> None:
    """The region offers the type, and the zone does if there is one."""
    kind, place = ("availability-zone", zone) if zone else ("region", clients.account.region)
    rules = [{"Name": "instance-type", "Values": [instance_type]}]
    found = _pages(
        clients, "describe_instance_type_offerings", "InstanceTypeOfferings",
        LocationType=kind, Filters=rules,
    )  # fmt: skip
    if found is None:
        return
    places = sorted(one["Location"] for one in found)
    if place not in places:
        offered = f"; it is in {', '.join(places)}" if zone and places else ""
        raise _no_capacity(
            f"AWS does not offer the instance type {instance_type} in {place}{offered}",
            "type not offered there",
        )


def _no_capacity(message: str, reason: str) -> NoCapacity:
    problem = NoCapacity(message, delay_seconds=NO_CAPACITY_SECONDS)
    problem.reason = reason
    return problem


def _require_image(clients: ServiceClients, template: HostTemplate) -> None:
    """The image exists, and is for processors of the type."""
    image, kind = template.image, template.instance_type
    found = _asked(clients, "ec2", "describe_images", ImageIds=[image])
    if found is None or ("Images" in found and not found["Images"]):
        raise PermanentError(
            f"{_where(clients)} has no image {image}, and none is shared with it",
            advice="correct `aws.image` of the fleet, or leave it out for the default image; an image is of one region",
        )
    types = _pages(clients, "describe_instance_types", "InstanceTypes", InstanceTypes=[kind])
    for one in found.get("Images", ()):
        if one.get("State", "available") != "available":
            raise PermanentError(
                f"image {image} is {one['State']}, and hosts need one that is available",
                advice="wait until `aws ec2 describe-images` shows it as available, or name another one",
            )
        for row in types or ():
            processors = row["ProcessorInfo"]["SupportedArchitectures"]
            if one["Architecture"] not in processors:
                raise PermanentError(
                    f"image {image} is for {one['Architecture']}, and {kind} has processors of {', '.join(processors)}",
                    advice=f"write an image for {processors[0]} as `aws.image` of the fleet, or choose the type with `resources.cpu`",
                )


def _require_reservation(
    clients: ServiceClients, template: HostTemplate, zone: str, *, needs_room: bool
) -> None:
    """The reservation is active, of the type and the zone, and has room for a host."""
    identity = template.reservation
    found = _asked(
        clients, "ec2", "describe_capacity_reservations", CapacityReservationIds=[identity]
    )
    if found is None:
        raise PermanentError(
            f"{_where(clients)} has no capacity reservation {identity}, and none is shared with it",
            advice="correct `reservation` of the fleet, or leave it out",
        )
    for one in found.get("CapacityReservations", ()):
        if one["State"] != "active":
            raise PermanentError(
                f"capacity reservation {identity} is {one['State']}, and only an active one has instances",
                advice="name another one as `reservation` of the fleet, or leave it out",
            )
        its = f"{one['InstanceType']} in {one['AvailabilityZone']}"
        if (one["InstanceType"], one["AvailabilityZone"]) != (template.instance_type, zone):
            raise PermanentError(
                f"capacity reservation {identity} is of {its}, and the hosts are {template.instance_type} in {zone}",
                advice="make `instance_types` and `availability_zones` of the fleet those of the reservation",
            )
        if needs_room and one["AvailableInstanceCount"] < 1:
            raise _no_capacity(
                f"capacity reservation {identity} of {its} has none of its {one['TotalInstanceCount']} instances free",
                "reservation used up",
            )


def _require_spot_role(clients: ServiceClients) -> None:
    if _asked(clients, "iam", "get_role", RoleName=_SPOT_ROLE) is None:
        raise PermanentError(
            f"account {clients.account.id} has no role {_SPOT_ROLE}, which EC2 needs to start spot instances",
            advice="run `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com` once",
        )


def _require_profile(clients: ServiceClients, template: HostTemplate) -> None:
    """Ask EC2 for an instance without creating one: it checks that the role may be passed."""
    import botocore.exceptions

    try:
        clients.of("ec2").run_instances(
            DryRun=True, MinCount=1, MaxCount=1, ImageId=template.image,
            InstanceType=template.instance_type, IamInstanceProfile={"Name": template.profile},
            **({"SubnetId": template.subnet} if template.subnet else {}),
        )  # fmt: skip
    except botocore.exceptions.ClientError as problem:
        text = str(problem)
        if "PassRole" in text:
            raise PermanentError(
                f"the credentials may not give instances the role of the instance profile {template.profile}",
                advice="add `iam:PassRole` for that role to their policy",
            ) from problem
        if "Invalid IAM Instance Profile" in text:
            raise PermanentError(
                f"account {clients.account.id} has no instance profile {template.profile}",
                advice="correct `aws.iam_instance_profile` of the fleet, or create the profile",
            ) from problem


# -- questions that may be refused ----------------------------------------------------------------

_FORBIDDEN = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_MISSING = frozenset(
    {
        "NoSuchEntity",
        "NoSuchResourceException",
        "InvalidAMIID.NotFound",
        "InvalidAMIID.Unavailable",
        "InvalidCapacityReservationId.NotFound",
        "InvalidSnapshot.NotFound",
        "InvalidVpcID.NotFound",
        "InvalidSubnetID.NotFound",
        "InvalidGroup.NotFound",
    }
)


def _asked(
    clients: ServiceClients, service: str, operation: str, **parameters: Any
) -> Mapping[str, Any] | None:
    """Return the answer of a call: None where the thing is missing, nothing in it where it may not be asked."""
    import botocore.exceptions

    with cloud_failures(clients.account.region):
        try:
            answer: Mapping[str, Any] = getattr(clients.of(service), operation)(**parameters)
        except botocore.exceptions.ClientError as problem:
            code = problem.response["Error"]["Code"]
            if code in _MISSING:
                return None
            if code in _FORBIDDEN:
                return {}
            raise
    return answer


def _pages(
    clients: ServiceClients, operation: str, things: str, **parameters: Any
) -> list[Mapping[str, Any]] | None:
    """Return all things that a list call of EC2 has; None: it may not be asked."""
    import botocore.exceptions

    with cloud_failures(clients.account.region):
        try:
            pages = clients.of("ec2").get_paginator(operation).paginate(**parameters)
            return [one for page in pages for one in page[things]]
        except botocore.exceptions.ClientError as problem:
            if problem.response["Error"]["Code"] in _FORBIDDEN:
                return None
            raise
