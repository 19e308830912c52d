"""`RunInstances` and launch templates: what EC2 refuses, and what moto loses."""

from __future__ import annotations

import base64
import copy
import secrets
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from cloud import catalog as cat
from cloud.capacity import placement_group, request_spot, reserve
from cloud.descriptions import describe, descriptions
from cloud.metadata import Metadata
from cloud.moto_calls import has_instance_profile
from cloud.region import InstanceRecord, Pace, Parameters, Region, tags_of
from cloud.wire import Call, Refusal


def run_instances(region: Region, call: Call, pace: Pace) -> dict[str, Any]:
    parameters = with_template(region, call)
    token = parameters.get("ClientToken", "")
    if token in region.tokens:
        before, result = region.tokens[token]
        if before != parameters:
            raise Refusal(
                "IdempotentParameterMismatch",
                "Arguments on this idempotent request are inconsistent with arguments used in previous request(s).",
            )
        return described_reservation(region, call, result["ReservationId"])
    kind, zone = check_request(region, call, parameters)
    spot = parameters.get("InstanceMarketOptions", {}).get("MarketType") == "spot"
    check_quota(region, kind, int(parameters["MaxCount"]), spot=spot)
    reserved = reserve(region, parameters, kind, zone)
    if call.parameters.get("DryRun"):
        raise Refusal(
            "DryRunOperation", "Request would have succeeded, but DryRun flag is set.", 412
        )
    result = region.moto(replace(call, parameters=for_moto(parameters, zone)))
    for instance in result["Instances"]:
        record_instance(
            region, call, instance, parameters, result, pace, spot=spot, reserved=reserved
        )
    if token:
        region.tokens[token] = (parameters, result)
    return described_reservation(region, call, result["ReservationId"])


def described_reservation(region: Region, call: Call, identity: str) -> dict[str, Any]:
    rows = {
        key: row for key, row in region.instances.items()
        if row.reservation["ReservationId"] == identity
    }  # fmt: skip
    head = next(iter(rows.values())).reservation
    described = [describe(region, key) for key in rows]
    for row in described:
        # The answer to the call is always `pending`.
        row["State"] = {"Name": "pending", "Code": 0}
    return {**head, "Instances": described}


def with_template(region: Region, call: Call) -> Parameters:
    parameters = copy.deepcopy(call.parameters)
    template = parameters.pop("LaunchTemplate", None)
    if template is None:
        return parameters
    version = template.pop("Version", "$Default")
    found = region.other(call, "DescribeLaunchTemplateVersions", **template, Versions=[version])[
        "LaunchTemplateVersions"
    ]
    if not found:
        raise Refusal("InvalidLaunchTemplateId.VersionNotFound", f"no version {version}")
    data = {**found[0]["LaunchTemplateData"], **region.templates.get(
        (found[0]["LaunchTemplateId"], found[0]["VersionNumber"]), {}
    )}  # fmt: skip
    tags = data.pop("TagSpecifications", []) + parameters.pop("TagSpecifications", [])
    merged = {**data, **parameters}
    return {**merged, "TagSpecifications": tags} if tags else merged


def create_template(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)["LaunchTemplate"]
    region.templates[result["LaunchTemplateId"], 1] = call.parameters["LaunchTemplateData"]
    return {"LaunchTemplate": result}


def create_template_version(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)["LaunchTemplateVersion"]
    key = (result["LaunchTemplateId"], int(result["VersionNumber"]))
    region.templates[key] = call.parameters["LaunchTemplateData"]
    return {"LaunchTemplateVersion": result}


def check_request(region: Region, call: Call, parameters: Parameters) -> tuple[str, str]:
    """Refuse what EC2 refuses; return type and zone."""
    image = parameters.get("ImageId")
    if not image:
        raise Refusal("MissingParameter", "The request must contain the parameter ImageId")
    if image not in region.catalog.images:
        raise Refusal("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    kind = parameters.get("InstanceType", "m1.small")
    if kind not in cat.instance_types():
        raise Refusal("InvalidParameterValue", f"Invalid value '{kind}' for InstanceType.")
    processors = cat.instance_types()[kind]["ProcessorInfo"]["SupportedArchitectures"]
    architecture = region.catalog.images[image]["Architecture"]
    if architecture not in processors:
        raise Refusal(
            "InvalidParameterValue",
            f"The architecture '{processors[0]}' of the specified instance type does not match the architecture '{architecture}' of the specified AMI.",
        )
    profile = parameters.get("IamInstanceProfile", {}).get("Name")
    if profile and not has_instance_profile(region.account, profile):
        raise Refusal(
            "InvalidParameterValue",
            f"Value ({profile}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
        )
    if key := parameters.get("KeyName"):
        region.other(call, "DescribeKeyPairs", KeyNames=[key])
    placement = parameters.get("Placement", {})
    if group := placement.get("GroupName"):
        placement_group(region, group)
    zone = choose_zone(region, call, parameters, kind)
    check_interfaces(parameters, kind)
    return kind, zone


def choose_zone(region: Region, call: Call, parameters: Parameters, kind: str) -> str:
    zones = cat.zones_with(region.name, kind)
    asked = parameters.get("Placement", {}).get("AvailabilityZone")
    subnet = parameters.get("SubnetId") or next(
        (row["SubnetId"] for row in parameters.get("NetworkInterfaces", []) if "SubnetId" in row),
        None,
    )  # fmt: skip
    if subnet:
        asked = region.other(call, "DescribeSubnets", SubnetIds=[subnet])["Subnets"][0][
            "AvailabilityZone"
        ]
    if not asked and zones:
        return zones[0]
    known = region.other(call, "DescribeAvailabilityZones")["AvailabilityZones"]
    if asked and asked not in {row["ZoneName"] for row in known}:
        raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{asked}]")
    if asked not in zones:
        raise Refusal(
            "Unsupported",
            f"Your requested instance type ({kind}) is not supported in your requested Availability Zone ({asked}).",
        )
    return str(asked)


def check_quota(region: Region, kind: str, count: int, *, spot: bool) -> None:
    code, limit = region.catalog.quota(kind, spot=spot)
    used = sum(
        cat.vcpus(row["InstanceType"])
        for row in descriptions(region)
        if row["State"]["Name"] in {"pending", "running"}
        and ("SpotInstanceRequestId" in row) is spot
        and cat.quota_code(row["InstanceType"], spot=spot) == code
    ) if limit < cat.VCPUS else 0  # fmt: skip
    if used + count * cat.vcpus(kind) <= limit:
        return
    if spot:
        raise Refusal("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
    raise Refusal(
        "VcpuLimitExceeded",
        f"You have requested more vCPU capacity than your current vCPU limit of {limit} allows for the instance bucket that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
    )


def record_instance(
    region: Region,
    call: Call,
    instance: dict[str, Any],
    parameters: Parameters,
    result: dict[str, Any],
    pace: Pace,
    *,
    spot: bool,
    reserved: str,
) -> None:
    identity = instance["InstanceId"]
    tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
    extra: dict[str, Any] = {"ClientToken": parameters.get("ClientToken", "")}
    if "CapacityReservationSpecification" in parameters:
        extra["CapacityReservationSpecification"] = parameters["CapacityReservationSpecification"]
    if reserved:
        extra["CapacityReservationId"] = reserved
    placement = parameters.get("Placement", {})
    extra["Placement"] = {**instance["Placement"], **placement}
    extra["Placement"]["AvailabilityZone"] = instance["Placement"]["AvailabilityZone"]
    if spot:
        extra["SpotInstanceRequestId"] = request_spot(region, identity, parameters)
        extra["InstanceLifecycle"] = "spot"
    else:
        instance.pop("InstanceLifecycle", None)
    interfaces = parameters.get("NetworkInterfaces", [])
    first, others = split_cards(interfaces)
    if len(interfaces) > 1:
        public = False
    elif first and "AssociatePublicIpAddress" in first:
        public = first["AssociatePublicIpAddress"]
    else:
        public = bool(instance.get("PublicIpAddress"))
    cards = [card(row, instance) for row in others]
    if first and "InterfaceType" in first:
        extra["_first"] = {"InterfaceType": first["InterfaceType"]}
    region.instances[identity] = InstanceRecord(
        {"ReservationId": result["ReservationId"], "OwnerId": region.account, "Groups": []},
        region.clock(),
        pace,
        region.address(tags),
        public,
        extra,
        cards,
        tags_of(parameters, "network-interface"),
        # moto's instances run at once; how long one is pending is decided here.
        seen={**instance, "State": {"Name": "running", "Code": 16}},
    )
    if region.hosts is not None:
        region.hosts.boot(identity, metadata_of(region, identity, parameters))


def metadata_of(region: Region, identity: str, parameters: Parameters) -> Metadata:
    return Metadata(
        identity,
        parameters.get("InstanceType", "m1.small"),
        region.instances[identity].extra["Placement"]["AvailabilityZone"],
        region.instances[identity].address,
        region.account,
        base64.b64decode(parameters.get("UserData", "")).decode(),
    )


def check_interfaces(parameters: Parameters, kind: str) -> None:
    interfaces = parameters.get("NetworkInterfaces", [])
    if interfaces and (parameters.get("SubnetId") or parameters.get("SecurityGroupIds")):
        raise Refusal(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified on the same request",
        )
    if len(interfaces) > 1 and any(row.get("AssociatePublicIpAddress") for row in interfaces):
        raise Refusal(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.",
        )
    cards = cat.network_cards(kind)
    for row in interfaces:
        if row.get("NetworkCardIndex", 0) >= cards:
            raise Refusal(
                "InvalidParameterValue",
                f"The instance type {kind} supports {cards} network cards, not index {row['NetworkCardIndex']}",
            )
        if row.get("InterfaceType", "interface").startswith("efa") and not cat.supports_efa(kind):
            raise Refusal(
                "UnsupportedOperation", f"Elastic Fabric Adapter is not supported on {kind}"
            )


def split_cards(
    interfaces: Iterable[dict[str, Any]],
) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    first, others = None, []
    for row in interfaces:
        if first is None and not row.get("DeviceIndex") and not row.get("NetworkCardIndex"):
            first = row
        else:
            others.append(row)
    return first, others


def card(row: dict[str, Any], instance: dict[str, Any]) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": f"eni-{secrets.token_hex(8)}",
        "InterfaceType": row.get("InterfaceType", "interface"),
        "SubnetId": instance.get("SubnetId"),
        "VpcId": instance.get("VpcId"),
        "Status": "in-use",
        "Groups": [{"GroupId": group} for group in row.get("Groups", [])],
        "Attachment": {
            "AttachmentId": f"eni-attach-{secrets.token_hex(8)}",
            "DeviceIndex": row.get("DeviceIndex", 0),
            "NetworkCardIndex": row.get("NetworkCardIndex", 0),
            "DeleteOnTermination": row.get("DeleteOnTermination", True),
            "Status": "attached",
        },
    }


_LOST_BY_MOTO = (
    "CapacityReservationSpecification",
    "ClientToken",
    "CpuOptions",
    "DryRun",
    "InstanceMarketOptions",
    "MaintenanceOptions",
)


def for_moto(parameters: Parameters, zone: str) -> Parameters:
    """Return the parameters as moto understands them: it makes `MinCount` instances."""
    result = {key: value for key, value in parameters.items() if key not in _LOST_BY_MOTO}
    result["MinCount"] = result["MaxCount"]
    first, _ = split_cards(result.get("NetworkInterfaces", []))
    result.pop("NetworkInterfaces", None)
    if first:
        known = {
            key: value
            for key, value in first.items()
            if key not in {"InterfaceType", "NetworkCardIndex", "AssociatePublicIpAddress"}
        }
        result["NetworkInterfaces"] = [known]
    if not result.get("SubnetId") and not (first and "SubnetId" in first):
        result["Placement"] = {"AvailabilityZone": zone}
    else:
        result.pop("Placement", None)
    return result


HANDLERS = {
    "CreateLaunchTemplate": create_template,
    "CreateLaunchTemplateVersion": create_template_version,
}
