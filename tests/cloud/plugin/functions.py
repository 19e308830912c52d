"""Functions of the provider that programs invoke."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cloud.plugin.client import Aws, CallError

Arguments = Mapping[str, Any]


def _identity(aws: Aws, given: Arguments) -> dict[str, Any]:
    found = aws.call("sts", "GetCallerIdentity")
    return {
        "accountId": found["Account"],
        "arn": found["Arn"],
        "userId": found["UserId"],
        "id": found["Account"],
    }


def _filters(given: Arguments) -> dict[str, Any]:
    rows = [{"Name": row["name"], "Values": row["values"]} for row in given.get("filters") or []]
    rows += [
        {"Name": f"tag:{key}", "Values": [value]}
        for key, value in (given.get("tags") or {}).items()
    ]
    return {"Filters": rows} if rows else {}


def _image(aws: Aws, given: Arguments) -> dict[str, Any]:
    owners = {"Owners": given["owners"]} if given.get("owners") else {}
    rows = aws.ec2("DescribeImages", **owners, **_filters(given))["Images"]
    if not rows:
        raise CallError(
            "Your query returned no results. Please change your search criteria and try again."
        )
    if len(rows) > 1 and not given.get("mostRecent"):
        raise CallError(
            "Your query returned more than one result. Please try a more specific search criteria."
        )
    newest = max(rows, key=lambda row: row["CreationDate"])
    return {
        "id": newest["ImageId"],
        "imageId": newest["ImageId"],
        "name": newest["Name"],
        "architecture": newest["Architecture"],
        "creationDate": newest["CreationDate"],
        "ownerId": newest["OwnerId"],
        "rootDeviceName": newest["RootDeviceName"],
    }


def _vpc(aws: Aws, given: Arguments) -> dict[str, Any]:
    query = _filters(given)
    if "id" in given:
        query["VpcIds"] = [given["id"]]
    if given.get("default"):
        query.setdefault("Filters", []).append({"Name": "is-default", "Values": ["true"]})
    rows = aws.ec2("DescribeVpcs", **query)["Vpcs"]
    if len(rows) != 1:
        raise CallError("no matching EC2 VPC found" if not rows else "multiple EC2 VPCs matched")
    return {
        "id": rows[0]["VpcId"],
        "cidrBlock": rows[0]["CidrBlock"],
        "default": rows[0]["IsDefault"],
        "state": rows[0]["State"],
        "ownerId": rows[0].get("OwnerId", ""),
    }


def _subnets(aws: Aws, given: Arguments) -> dict[str, Any]:
    rows = aws.ec2("DescribeSubnets", **_filters(given))["Subnets"]
    return {"id": aws.region, "ids": sorted(row["SubnetId"] for row in rows)}


def _subnet(aws: Aws, given: Arguments) -> dict[str, Any]:
    rows = aws.ec2("DescribeSubnets", SubnetIds=[given["id"]])["Subnets"]
    return {
        "id": rows[0]["SubnetId"],
        "vpcId": rows[0]["VpcId"],
        "availabilityZone": rows[0]["AvailabilityZone"],
        "cidrBlock": rows[0]["CidrBlock"],
        "mapPublicIpOnLaunch": rows[0]["MapPublicIpOnLaunch"],
    }


def _parameter(aws: Aws, given: Arguments) -> dict[str, Any]:
    try:
        found = aws.call("ssm", "GetParameter", Name=given["name"])["Parameter"]
    except CallError as error:
        raise CallError(f"reading SSM Parameter ({given['name']}): {error}", error.code) from error
    return {
        "id": found["Name"],
        "name": found["Name"],
        "arn": found["ARN"],
        "type": found["Type"],
        "value": found["Value"],
        "version": found["Version"],
    }


def _zones(aws: Aws, given: Arguments) -> dict[str, Any]:
    rows = aws.ec2("DescribeAvailabilityZones", **_filters(given))["AvailabilityZones"]
    return {
        "id": aws.region,
        "names": [row["ZoneName"] for row in rows],
        "zoneIds": [row["ZoneId"] for row in rows],
    }


def _region(aws: Aws, given: Arguments) -> dict[str, Any]:
    return {"id": aws.region, "name": aws.region, "region": aws.region}


FUNCTIONS: dict[str, Callable[[Aws, Arguments], dict[str, Any]]] = {
    "aws:ec2/getAmi:getAmi": _image,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _subnets,
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _identity,
    "aws:index/getRegion:getRegion": _region,
    "aws:ssm/getParameter:getParameter": _parameter,
}
