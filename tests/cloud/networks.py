"""Elastic addresses and interfaces: those of moto exist, so that a test could dial one."""

from __future__ import annotations

from typing import Any

from cloud.descriptions import describe
from cloud.region import Region
from cloud.wire import Call, Refusal


def allocate_address(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)
    tags = {
        tag["Key"]: tag["Value"]
        for row in call.parameters.get("TagSpecifications", [])
        for tag in row["Tags"]
    }
    region.elastic[result["PublicIp"]] = region.address(tags)
    return {**result, "PublicIp": region.elastic[result["PublicIp"]]}


def describe_addresses(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)
    for row in result["Addresses"]:
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
    "DescribeAddresses": describe_addresses,
    "DescribeNetworkInterfaces": describe_interfaces,
}
