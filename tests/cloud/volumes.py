"""Volumes, with the zones, the attachments and the tokens that moto does not check."""

from __future__ import annotations

from typing import Any

from cloud.descriptions import describe
from cloud.region import Region
from cloud.wire import Call, Refusal


def create_volume(region: Region, call: Call) -> dict[str, Any]:
    parameters = call.parameters
    zones = region.other(call, "DescribeAvailabilityZones")["AvailabilityZones"]
    zone = parameters.get("AvailabilityZone")
    if zone not in {row["ZoneName"] for row in zones}:
        raise Refusal("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
    token = parameters.get("ClientToken", "")
    if token in region.tokens:
        before, result = region.tokens[token]
        if before != parameters:
            raise Refusal("IdempotentParameterMismatch", "The parameters of the token differ")
        return result
    result = region.moto(call, ClientToken=None)
    if token:
        region.tokens[token] = (parameters, result)
    return result


def attach_volume(region: Region, call: Call) -> dict[str, Any]:
    identity, volume = call.parameters["InstanceId"], call.parameters["VolumeId"]
    if identity not in region.instances:
        raise Refusal("InvalidInstanceID.NotFound", f"The instance ID '{identity}' does not exist")
    instance = describe(region, identity)
    if instance["State"]["Name"] not in {"running", "stopped"}:
        raise Refusal("IncorrectState", f"Instance '{identity}' is not 'running'.")
    found = region.other(call, "DescribeVolumes", VolumeIds=[volume])["Volumes"][0]
    if found["State"] == "in-use":
        raise Refusal("VolumeInUse", f"{volume} is already attached to an instance")
    zone = instance["Placement"]["AvailabilityZone"]
    if found["AvailabilityZone"] != zone:
        raise Refusal(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume}' is not in the same availability zone as instance '{identity}'",
        )
    device = call.parameters["Device"]
    if device in {row["DeviceName"] for row in instance.get("BlockDeviceMappings", [])}:
        raise Refusal(
            "InvalidParameterValue",
            f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use",
        )
    result = region.moto(call)
    region.instances[identity].seen = None
    if region.hosts is not None:
        region.hosts.attach(identity, volume, found["Size"])
    return result


def detach_volume(region: Region, call: Call) -> dict[str, Any]:
    volume = call.parameters["VolumeId"]
    found = region.other(call, "DescribeVolumes", VolumeIds=[volume])["Volumes"][0]
    if not found["Attachments"]:
        raise Refusal("IncorrectState", f"Volume '{volume}' is in the 'available' state.")
    attachment = found["Attachments"][0]
    if volume in region.stuck and not call.parameters.get("Force"):
        return {**attachment, "State": "busy"}
    region.stuck.discard(volume)
    identity = attachment["InstanceId"]
    result = region.moto(call, InstanceId=identity, Device=attachment["Device"], Force=None)
    if identity in region.instances:
        region.instances[identity].seen = None
    if region.hosts is not None:
        region.hosts.detach(volume)
    return result


def modify_volume(region: Region, call: Call) -> dict[str, Any]:
    result = region.moto(call)
    if region.hosts is not None and "Size" in call.parameters:
        region.hosts.resize(call.parameters["VolumeId"], call.parameters["Size"])
    return result


HANDLERS = {
    "AttachVolume": attach_volume,
    "CreateVolume": create_volume,
    "DetachVolume": detach_volume,
    "ModifyVolume": modify_volume,
}
