"""`aws:ec2/instance:Instance`: created by one call, waited for until it runs, changed in place where EC2 can."""

from __future__ import annotations

import base64
import uuid
from typing import Any

from cloud.plugin.client import Aws, CallError
from cloud.plugin.shapes import (
    Outputs,
    PartialFailure,
    Values,
    change_tags,
    pick,
    tag_list,
    tag_sets,
    tags_of,
)

REPLACED_BY = frozenset({
    "ami", "associatePublicIpAddress", "availabilityZone", "ebsBlockDevices", "instanceMarketOptions",
    "keyName", "placementGroup", "privateIp", "securityGroups", "subnetId", "tenancy",
})  # fmt: skip
INPUTS = REPLACED_BY | {
    "capacityReservationSpecification", "disableApiTermination", "ebsOptimized", "iamInstanceProfile",
    "instanceInitiatedShutdownBehavior", "instanceType", "launchTemplate", "metadataOptions",
    "rootBlockDevice", "tags", "userData", "userDataBase64", "userDataReplaceOnChange", "volumeTags",
    "vpcSecurityGroupIds",
}  # fmt: skip
CHOSEN_BY_AWS = frozenset({
    "associatePublicIpAddress", "availabilityZone", "capacityReservationSpecification",
    "disableApiTermination", "instanceInitiatedShutdownBehavior", "instanceMarketOptions", "keyName",
    "metadataOptions", "placementGroup", "privateIp", "rootBlockDevice", "subnetId", "tenancy",
    "vpcSecurityGroupIds",
})  # fmt: skip
COMPUTED = ("arn", "instanceState", "privateDns", "privateIp", "publicDns", "publicIp",
            "availabilityZone", "primaryNetworkInterfaceId", "subnetId")  # fmt: skip
POLL_SECONDS = 0.1
"""The provider looks every 10 s; the front is quicker than EC2."""

_DISK = {
    "volumeSize": "VolumeSize",
    "volumeType": "VolumeType",
    "iops": "Iops",
    "throughput": "Throughput",
    "encrypted": "Encrypted",
    "kmsKeyId": "KmsKeyId",
    "deleteOnTermination": "DeleteOnTermination",
    "snapshotId": "SnapshotId",
}
_METADATA = {
    "httpEndpoint": "HttpEndpoint",
    "httpTokens": "HttpTokens",
    "httpPutResponseHopLimit": "HttpPutResponseHopLimit",
    "instanceMetadataTags": "InstanceMetadataTags",
}


def create(aws: Aws, inputs: Values) -> str:
    # One token for all attempts of this call, and another one for the next call: a caller that
    # starts again buys again.
    token = str(uuid.uuid4())
    result = aws.ec2("RunInstances", ClientToken=token, **_request(aws, inputs))
    identity = str(result["Instances"][0]["InstanceId"])
    try:
        wait_for(aws, identity, "running", "create")
        _tag_root(aws, identity, inputs)
    except CallError as error:
        raise PartialFailure(
            identity, f"waiting for EC2 Instance ({identity}) create: {error}"
        ) from error
    return identity


def _request(aws: Aws, inputs: Values) -> dict[str, Any]:
    request: dict[str, Any] = {
        "MinCount": 1,
        "MaxCount": 1,
        **pick(
            inputs, ami="ImageId", instanceType="InstanceType", keyName="KeyName",
            disableApiTermination="DisableApiTermination", ebsOptimized="EbsOptimized",
            instanceInitiatedShutdownBehavior="InstanceInitiatedShutdownBehavior",
        ),
    }  # fmt: skip
    placement = pick(
        inputs, availabilityZone="AvailabilityZone", placementGroup="GroupName", tenancy="Tenancy"
    )
    if placement:
        request["Placement"] = placement
    if inputs.get("associatePublicIpAddress") is not None:
        request["NetworkInterfaces"] = [{
            "DeviceIndex": 0,
            "AssociatePublicIpAddress": inputs["associatePublicIpAddress"],
            **pick(inputs, subnetId="SubnetId", vpcSecurityGroupIds="Groups", privateIp="PrivateIpAddress"),
        }]  # fmt: skip
    else:
        request |= pick(
            inputs,
            subnetId="SubnetId",
            vpcSecurityGroupIds="SecurityGroupIds",
            privateIp="PrivateIpAddress",
        )
    if "securityGroups" in inputs:
        request["SecurityGroups"] = inputs["securityGroups"]
    if "userData" in inputs:
        request["UserData"] = inputs["userData"]
    elif "userDataBase64" in inputs:
        request["UserData"] = base64.b64decode(inputs["userDataBase64"]).decode()
    if "iamInstanceProfile" in inputs:
        request["IamInstanceProfile"] = {"Name": inputs["iamInstanceProfile"]}
    if "metadataOptions" in inputs:
        request["MetadataOptions"] = pick(inputs["metadataOptions"], **_METADATA)
    if "launchTemplate" in inputs:
        given = inputs["launchTemplate"]
        request["LaunchTemplate"] = pick(given, id="LaunchTemplateId", name="LaunchTemplateName")
        request["LaunchTemplate"]["Version"] = str(given.get("version") or "$Default")
    request |= _market(inputs) | _disks(aws, inputs)
    tags = tag_sets(aws, inputs, "instance")
    if volume_tags := inputs.get("volumeTags"):
        rows = tags.setdefault("TagSpecifications", [])
        rows.append({"ResourceType": "volume", "Tags": tag_list(volume_tags)})
    return request | tags


def _market(inputs: Values) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if "instanceMarketOptions" in inputs:
        market = inputs["instanceMarketOptions"]
        result["InstanceMarketOptions"] = {"MarketType": market.get("marketType", "spot")}
        if spot := market.get("spotOptions"):
            result["InstanceMarketOptions"]["SpotOptions"] = pick(
                spot, maxPrice="MaxPrice", spotInstanceType="SpotInstanceType",
                instanceInterruptionBehavior="InstanceInterruptionBehavior", validUntil="ValidUntil",
            )  # fmt: skip
    if "capacityReservationSpecification" in inputs:
        given = inputs["capacityReservationSpecification"]
        wanted = pick(given, capacityReservationPreference="CapacityReservationPreference")
        if target := given.get("capacityReservationTarget"):
            wanted["CapacityReservationTarget"] = pick(
                target, capacityReservationId="CapacityReservationId"
            )
        result["CapacityReservationSpecification"] = wanted
    return result


def _disks(aws: Aws, inputs: Values) -> dict[str, Any]:
    rows = [
        {"DeviceName": row["deviceName"], "Ebs": pick(row, **_DISK)}
        for row in inputs.get("ebsBlockDevices") or []
    ]
    if root := inputs.get("rootBlockDevice"):
        image = aws.ec2("DescribeImages", ImageIds=[inputs["ami"]])["Images"]
        if image:
            ebs = {"DeleteOnTermination": True, **pick(root, **_DISK)}
            rows.insert(0, {"DeviceName": image[0]["RootDeviceName"], "Ebs": ebs})
    return {"BlockDeviceMappings": rows} if rows else {}


def wait_for(aws: Aws, identity: str, wanted: str, purpose: str) -> None:
    """Wait for a state; an instance that a list does not show yet is waited for as well."""
    while True:
        found = describe(aws, identity)
        state = found["State"]["Name"] if found else "pending"
        if state == wanted:
            return
        if state == "terminated" and wanted != "terminated":
            reason = (found or {}).get("StateReason", {}).get("Message", "")
            raise CallError(
                f"unexpected state 'terminated', wanted target '{wanted}'. last error: {reason}"
            )
        aws.wait(POLL_SECONDS)


def describe(aws: Aws, identity: str) -> dict[str, Any] | None:
    try:
        rows = aws.ec2("DescribeInstances", InstanceIds=[identity])["Reservations"]
    except CallError as error:
        if error.code == "InvalidInstanceID.NotFound":
            return None
        raise
    return rows[0]["Instances"][0] if rows else None


def read(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = describe(aws, identity)
    if found is None or found["State"]["Name"] == "terminated":
        return None
    interfaces = found.get("NetworkInterfaces", [])
    outputs: Outputs = {
        "arn": f"arn:aws:ec2:{aws.region}:{aws.account}:instance/{identity}",
        "ami": found["ImageId"],
        "instanceType": found["InstanceType"],
        "instanceState": found["State"]["Name"],
        "availabilityZone": found["Placement"]["AvailabilityZone"],
        "placementGroup": found["Placement"].get("GroupName", ""),
        "tenancy": found["Placement"].get("Tenancy", "default"),
        "keyName": found.get("KeyName", ""),
        "subnetId": found.get("SubnetId", ""),
        "vpcSecurityGroupIds": _groups(found),
        "privateIp": found.get("PrivateIpAddress", ""),
        "privateDns": found.get("PrivateDnsName", ""),
        "publicIp": found.get("PublicIpAddress", ""),
        "publicDns": found.get("PublicDnsName", ""),
        "primaryNetworkInterfaceId": interfaces[0]["NetworkInterfaceId"] if interfaces else "",
        "metadataOptions": _renamed(found.get("MetadataOptions", {}), _METADATA),
        "spotInstanceRequestId": found.get("SpotInstanceRequestId", ""),
        **tags_of(aws, found),
    }
    if profile := found.get("IamInstanceProfile"):
        outputs["iamInstanceProfile"] = profile["Arn"].rpartition("/")[2]
    if state.get("rootBlockDevice"):
        outputs["rootBlockDevice"] = _root(aws, found)
    return outputs


def _groups(found: dict[str, Any]) -> list[str]:
    groups = found.get("SecurityGroups") or next(
        (row["Groups"] for row in found.get("NetworkInterfaces", [])), []
    )
    return sorted(row["GroupId"] for row in groups)


def _renamed(found: dict[str, Any], names: dict[str, str]) -> Outputs:
    return {ours: found[theirs] for ours, theirs in names.items() if theirs in found}


def _root(aws: Aws, found: dict[str, Any]) -> Outputs:
    volume = _root_volume(found)
    row = aws.ec2("DescribeVolumes", VolumeIds=[volume["VolumeId"]])["Volumes"][0]
    size = {**row, "VolumeSize": row["Size"], "DeleteOnTermination": volume["DeleteOnTermination"]}
    tags = {tag["Key"]: tag["Value"] for tag in row.get("Tags", ())}
    return {"volumeId": volume["VolumeId"], "tags": tags, **_renamed(size, _DISK)}


def _tag_root(aws: Aws, identity: str, inputs: Values) -> None:
    """Tag the root disk by a call of its own, as the provider does, unless `volumeTags` have it."""
    found = describe(aws, identity)
    if found and (tags := (inputs.get("rootBlockDevice") or {}).get("tags")):
        aws.ec2("CreateTags", Resources=[_root_volume(found)["VolumeId"]], Tags=tag_list(tags))


def _root_volume(found: dict[str, Any]) -> dict[str, Any]:
    disks: list[dict[str, Any]] = found["BlockDeviceMappings"]
    named = [row["Ebs"] for row in disks if row["DeviceName"] == found["RootDeviceName"]]
    return dict(named[0])


def update(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    change_tags(aws, identity, old, new)
    stopped = changed & {"instanceType", "userData", "userDataBase64"}
    if stopped:
        # EC2 changes these of a stopped instance only; the provider starts it again.
        aws.ec2("StopInstances", InstanceIds=[identity])
        wait_for(aws, identity, "stopped", "stop")
        _change_stopped(aws, identity, new, stopped)
        aws.ec2("StartInstances", InstanceIds=[identity])
        wait_for(aws, identity, "running", "start")
    for name, member, attribute in (
        ("disableApiTermination", "DisableApiTermination", True),
        ("instanceInitiatedShutdownBehavior", "InstanceInitiatedShutdownBehavior", True),
        ("vpcSecurityGroupIds", "Groups", False),
    ):
        if name in changed:
            value = new.get(name)
            aws.ec2(
                "ModifyInstanceAttribute",
                InstanceId=identity,
                **{member: {"Value": value} if attribute else value},
            )
    if "metadataOptions" in changed:
        options = pick(new["metadataOptions"], **_METADATA)
        aws.ec2("ModifyInstanceMetadataOptions", InstanceId=identity, **options)
    if "rootBlockDevice" in changed:
        _change_root(aws, identity, new)
        _tag_root(aws, identity, new)
    known = stopped | {"disableApiTermination", "instanceInitiatedShutdownBehavior", "metadataOptions",
                       "rootBlockDevice", "tags", "userDataReplaceOnChange", "vpcSecurityGroupIds"}  # fmt: skip
    if unknown := changed - known:
        raise CallError(f"the plugin of the tests cannot change {', '.join(sorted(unknown))}")


def _change_stopped(aws: Aws, identity: str, new: Values, changed: set[str]) -> None:
    if "instanceType" in changed:
        value = {"Value": new["instanceType"]}
        aws.ec2("ModifyInstanceAttribute", InstanceId=identity, InstanceType=value)
    if changed - {"instanceType"}:
        text = new.get("userData") or base64.b64decode(new.get("userDataBase64", "")).decode()
        aws.ec2("ModifyInstanceAttribute", InstanceId=identity, UserData={"Value": text.encode()})


def _change_root(aws: Aws, identity: str, new: Values) -> None:
    found = describe(aws, identity)
    assert found is not None
    wanted = pick(
        new["rootBlockDevice"], volumeSize="Size", volumeType="VolumeType", iops="Iops",
        throughput="Throughput",
    )  # fmt: skip
    if wanted:
        aws.ec2("ModifyVolume", VolumeId=_root_volume(found)["VolumeId"], **wanted)


def delete(aws: Aws, identity: str, state: Values) -> None:
    try:
        aws.ec2("TerminateInstances", InstanceIds=[identity])
    except CallError as error:
        if error.code == "InvalidInstanceID.NotFound":
            return
        raise
    while (found := describe(aws, identity)) and found["State"]["Name"] != "terminated":
        aws.wait(POLL_SECONDS)
