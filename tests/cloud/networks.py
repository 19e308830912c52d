"""Elastic addresses and interfaces: those of moto exist, so that a test could dial one."""

from __future__ import annotations

from typing import Any

from cloud import catalog as cat
from cloud.descriptions import describe
from cloud.region import Region
from cloud.wire import Call, Refusal


def allocate_address(region: Region, call: Call) -> dict[str, Any]:
    limit = region.catalog.vcpus.get(cat.ADDRESS_QUOTA, cat.VCPUS)
    if len(region.other(call, "DescribeAddresses")["Addresses"]) >= limit:
        raise Refusal("AddressLimitExceeded", "The maximum number of addresses has been reached.")
    result = region.moto(call)
    tags = {
        tag["Key"]: tag["Value"]
        for row in call.parameters.get("TagSpecifications", [])
        for tag in row["Tags"]
    }
    region.elastic[result["PublicIp"]] = region.address(tags)
    return {**result, "PublicIp": region.elastic[result["PublicIp"]]}


def associate_address(region: Region, call: Call) -> dict[str, Any]:
    parameters = call.parameters
    identity = parameters.get("InstanceId", "")
    if identity in region.instances and region.instances[identity].cards:
        raise Refusal(
            "InvalidInstanceID",
            f"There are multiple interfaces attached to instance '{identity}'. Please specify an interface ID for the operation instead.",
        )
    result = region.moto(call)
    rows = {key: describe(region, key)["NetworkInterfaces"] for key in region.instances}
    found = region.other(call, "DescribeAddresses", AllocationIds=[parameters["AllocationId"]])
    for key, interfaces in rows.items():
        shown = {one["NetworkInterfaceId"] for one in interfaces}
        if key == identity or parameters.get("NetworkInterfaceId") in shown:
            region.instances[key].seen = None
            if region.hosts is not None:
                region.hosts.add_address(key, region.elastic[found["Addresses"][0]["PublicIp"]])
    return result


def describe_addresses(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)
    owners = {
        interface["NetworkInterfaceId"]: identity
        for identity in region.instances
        for interface in describe(region, identity)["NetworkInterfaces"]
    }
    for row in result["Addresses"]:
        # moto names the instance only if it was associated by its own id.
        if owner := owners.get(row.get("NetworkInterfaceId", "")):
            row["InstanceId"] = owner
        row["PublicIp"] = region.elastic.get(row["PublicIp"], row["PublicIp"])
    return result


def describe_interfaces(region: Region, call: Call) -> dict[str, Any]:
    """List interfaces with the addresses, types and tags of their instances, and every card."""
    result = region.moto(call)
    asked = {value for rule in call.parameters.get("Filters", []) for value in rule["Values"]}
    for identity, row in region.instances.items():
        shown = {
            one["NetworkInterfaceId"]: one
            for one in describe(region, identity)["NetworkInterfaces"]
        }
        for found in result["NetworkInterfaces"]:
            if found["NetworkInterfaceId"] in shown:
                found.pop("Association", None)
                found.update(shown[found["NetworkInterfaceId"]], TagSet=row.interface_tags)
        if row.cards and shown and (not asked or identity in asked):
            attached = {"InstanceId": identity, "InstanceOwnerId": region.account}
            result["NetworkInterfaces"] += [
                {
                    **card,
                    "Attachment": {**card["Attachment"], **attached},
                    "TagSet": row.interface_tags,
                }
                for card in row.cards
            ]
    return result


def create_security_group(region: Region, call: Call) -> dict[str, Any]:
    asked = call.parameters.get("VpcId")
    known = region.other(call, "DescribeVpcs")["Vpcs"]
    if asked and asked not in {one["VpcId"] for one in known}:
        raise Refusal("InvalidVpcID.NotFound", f"The vpc ID '{asked}' does not exist")
    return region.moto(call)


HANDLERS = {
    "CreateSecurityGroup": create_security_group,
    "AllocateAddress": allocate_address,
    "AssociateAddress": associate_address,
    "DescribeAddresses": describe_addresses,
    "DescribeNetworkInterfaces": describe_interfaces,
}
