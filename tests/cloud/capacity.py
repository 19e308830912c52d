"""What moto lacks: placement groups, capacity reservations, spot requests, images of the catalog."""

from __future__ import annotations

import secrets
from typing import Any

from cloud.descriptions import descriptions
from cloud.filters import matches
from cloud.region import Parameters, Region, tags_of
from cloud.wire import Call, Refusal


def reserve(region: Region, parameters: Parameters, kind: str, zone: str) -> str:
    target = parameters.get("CapacityReservationSpecification", {}).get(
        "CapacityReservationTarget", {}
    )
    identity = str(target.get("CapacityReservationId", ""))
    if not identity:
        return ""
    found = region.reservations.get(identity)
    if found is None or found["State"] != "active":
        raise Refusal(
            "InvalidCapacityReservationId.NotFound",
            f"The capacity reservation '{identity}' does not exist",
        )
    if (found["InstanceType"], found["AvailabilityZone"]) != (kind, zone):
        raise Refusal(
            "InvalidParameterValue",
            "The instance attributes do not match those of the capacity reservation",
        )
    if found["TotalInstanceCount"] - used_of_reservation(region, identity) < int(
        parameters["MaxCount"]
    ):
        raise Refusal("ReservationCapacityExceeded", "The reservation has no capacity left")
    return identity


def used_of_reservation(region: Region, identity: str) -> int:
    return sum(
        row.get("CapacityReservationId") == identity and row["State"]["Name"] != "terminated"
        for row in descriptions(region)
    )


def request_spot(region: Region, identity: str, parameters: Parameters) -> str:
    if not region.catalog.spot_role:
        raise Refusal(
            "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
            "The provided credentials do not have permission to create the service-linked role for EC2 Spot Instances.",
            403,
        )
    request = f"sir-{secrets.token_hex(4)}"
    options = parameters["InstanceMarketOptions"].get("SpotOptions", {})
    region.spot_requests[request] = {
        "SpotInstanceRequestId": request,
        "InstanceId": identity,
        "State": "active",
        "Status": {"Code": "fulfilled", "Message": "Your spot request is fulfilled."},
        "Type": options.get("SpotInstanceType", "one-time"),
        "InstanceInterruptionBehavior": options.get("InstanceInterruptionBehavior", "terminate"),
    }
    return request


def placement_group(region: Region, name: str) -> dict[str, Any]:
    if name not in region.placement_groups:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return region.placement_groups[name]


def create_placement_group(region: Region, call: Call) -> dict[str, Any]:
    name = call.parameters["GroupName"]
    if name in region.placement_groups:
        raise Refusal(
            "InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists."
        )
    identity = f"pg-{secrets.token_hex(8)}"
    arn = f"arn:aws:ec2:{region.name}:{region.account}:placement-group/{name}"
    region.placement_groups[name] = {
        "GroupName": name,
        "GroupId": identity,
        "GroupArn": arn,
        "State": "available",
        "Strategy": call.parameters.get("Strategy", "cluster"),
        "PartitionCount": call.parameters.get("PartitionCount"),
        "SpreadLevel": call.parameters.get("SpreadLevel"),
        "Tags": tags_of(call.parameters, "placement-group"),
    }
    return {"PlacementGroup": region.placement_groups[name]}


def describe_placement_groups(region: Region, call: Call) -> dict[str, Any]:
    names = call.parameters.get("GroupNames")
    ids = call.parameters.get("GroupIds", [])
    rows = (
        [placement_group(region, name) for name in names]
        if names
        else list(region.placement_groups.values())
    )
    chosen = [row for row in rows if not ids or row["GroupId"] in ids]
    filters = call.parameters.get("Filters", [])
    return {"PlacementGroups": [row for row in chosen if matches(row, filters)]}


def delete_placement_group(region: Region, call: Call) -> dict[str, Any]:
    name = call.parameters["GroupName"]
    placement_group(region, name)
    for row in descriptions(region):
        if row["Placement"].get("GroupName") == name and row["State"]["Name"] != "terminated":
            raise Refusal("InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use.")
    del region.placement_groups[name]
    return {}


def create_capacity_reservation(region: Region, call: Call) -> dict[str, Any]:
    parameters = call.parameters
    identity = f"cr-{secrets.token_hex(8)}"
    region.reservations[identity] = {
        "CapacityReservationId": identity,
        "OwnerId": region.account,
        "InstanceType": parameters["InstanceType"],
        "InstancePlatform": parameters["InstancePlatform"],
        "AvailabilityZone": parameters["AvailabilityZone"],
        "TotalInstanceCount": parameters["InstanceCount"],
        "State": "active",
        "InstanceMatchCriteria": parameters.get("InstanceMatchCriteria", "open"),
        "Tags": tags_of(parameters, "capacity-reservation"),
    }
    return {"CapacityReservation": with_available(region, identity)}


def with_available(region: Region, identity: str) -> dict[str, Any]:
    row = region.reservations[identity]
    free = row["TotalInstanceCount"] - used_of_reservation(region, identity)
    return {**row, "AvailableInstanceCount": free}


def describe_capacity_reservations(region: Region, call: Call) -> dict[str, Any]:
    ids = call.parameters.get("CapacityReservationIds", list(region.reservations))
    for identity in ids:
        if identity not in region.reservations:
            raise Refusal("InvalidCapacityReservationId.NotFound", f"'{identity}' does not exist")
    rows = [with_available(region, identity) for identity in ids]
    filters = call.parameters.get("Filters", [])
    return {"CapacityReservations": [row for row in rows if matches(row, filters)]}


def cancel_capacity_reservation(region: Region, call: Call) -> dict[str, Any]:
    region.reservations[call.parameters["CapacityReservationId"]]["State"] = "cancelled"
    return {"Return": True}


def describe_spot_requests(region: Region, call: Call) -> dict[str, Any]:
    ids = call.parameters.get("SpotInstanceRequestIds")
    rows = [row for key, row in region.spot_requests.items() if not ids or key in ids]
    filters = call.parameters.get("Filters", [])
    return {"SpotInstanceRequests": [row for row in rows if matches(row, filters)]}


def spot_price_history(region: Region, call: Call) -> dict[str, Any]:
    return {
        "SpotPriceHistory": [
            {
                "InstanceType": name,
                "SpotPrice": price,
                "ProductDescription": "Linux/UNIX",
                "AvailabilityZone": f"{region.name}a",
            }
            for name, price in region.catalog.spot_prices.items()
        ]
    }


def cancel_spot_requests(region: Region, call: Call) -> dict[str, Any]:
    for identity in call.parameters["SpotInstanceRequestIds"]:
        region.spot_requests[identity]["State"] = "cancelled"
    return {
        "CancelledSpotInstanceRequests": [
            {"SpotInstanceRequestId": identity, "State": "cancelled"}
            for identity in call.parameters["SpotInstanceRequestIds"]
        ]
    }


def describe_images(region: Region, call: Call) -> dict[str, Any]:
    ids = call.parameters.get("ImageIds", [])
    for identity in ids:
        if identity not in region.catalog.images:
            raise Refusal("InvalidAMIID.NotFound", f"The image id '[{identity}]' does not exist")
    owners = call.parameters.get("Owners", [])
    rows = [
        row for key, row in region.catalog.images.items()
        if (not ids or key in ids)
        and (not owners or {row["OwnerId"], row["ImageOwnerAlias"]} & set(owners))
    ]  # fmt: skip
    filters = call.parameters.get("Filters", [])
    return {"Images": [row for row in rows if matches(row, filters)]}


HANDLERS = {
    "CancelCapacityReservation": cancel_capacity_reservation,
    "CancelSpotInstanceRequests": cancel_spot_requests,
    "CreateCapacityReservation": create_capacity_reservation,
    "CreatePlacementGroup": create_placement_group,
    "DeletePlacementGroup": delete_placement_group,
    "DescribeCapacityReservations": describe_capacity_reservations,
    "DescribeImages": describe_images,
    "DescribePlacementGroups": describe_placement_groups,
    "DescribeSpotInstanceRequests": describe_spot_requests,
    "DescribeSpotPriceHistory": spot_price_history,
}
