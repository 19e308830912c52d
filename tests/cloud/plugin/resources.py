"""
The table of resources: their inputs, what replaces them, and how each is created, read, changed and deleted.

Names and replacements are those of the provider `aws` 7. `Resource.computed` are outputs that a preview
does not know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cloud.plugin import instance, launch_template, security_group
from cloud.plugin.client import Aws, CallError
from cloud.plugin.shapes import (
    Outputs,
    PartialFailure,
    Values,
    change_tags,
    pick,
    tag_sets,
    tags_of,
)

__all__ = ["RESOURCES", "PartialFailure", "Resource"]


def _nothing_to_change(
    aws: Aws, identity: str, old: Values, new: Values, changed: set[str]
) -> None:
    """Change tags only."""
    if unknown := changed - {"tags"}:
        raise CallError(f"the plugin of the tests cannot change {', '.join(sorted(unknown))}")
    change_tags(aws, identity, old, new)


@dataclass(frozen=True)
class Resource:
    title: str
    inputs: frozenset[str]
    create: Callable[[Aws, Values], str]
    read: Callable[[Aws, str, Values], Outputs | None]
    delete: Callable[[Aws, str, Values], None]
    update: Callable[[Aws, str, Values, Values, set[str]], None] = _nothing_to_change
    replaced_by: frozenset[str] = frozenset()
    computed: tuple[str, ...] = ("arn",)
    required: frozenset[str] = frozenset()
    chosen_by_aws: frozenset[str] = frozenset()
    """Inputs that have a value without being given: leaving one out is no difference."""
    named: str = ""
    """The input that `Check` chooses when the program gives no name."""
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def replacing(self, new: Values) -> frozenset[str]:
        """Return the inputs whose change needs another object."""
        more = {"userData", "userDataBase64"} if new.get("userDataReplaceOnChange") else set()
        return self.replaced_by | more | {"region"}


# -- Key pairs and placement groups


def _create_key(aws: Aws, inputs: Values) -> str:
    aws.ec2(
        "ImportKeyPair",
        KeyName=inputs["keyName"],
        PublicKeyMaterial=inputs["publicKey"].encode(),
        **tag_sets(aws, inputs, "key-pair"),
    )
    return str(inputs["keyName"])


def _read_key(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribeKeyPairs", "KeyPairs", KeyNames=[identity])
    if found is None:
        return None
    arn = f"arn:aws:ec2:{aws.region}:{aws.account}:key-pair/{identity}"
    return {
        "arn": arn,
        "keyName": identity,
        "keyPairId": found["KeyPairId"],
        "fingerprint": found["KeyFingerprint"],
        **tags_of(aws, found),
    }


def _change_key(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    found = _found(aws, "DescribeKeyPairs", "KeyPairs", KeyNames=[identity])
    assert found is not None
    _nothing_to_change(aws, found["KeyPairId"], old, new, changed)


def _create_placement_group(aws: Aws, inputs: Values) -> str:
    aws.ec2(
        "CreatePlacementGroup",
        GroupName=inputs["name"],
        Strategy=inputs["strategy"],
        **pick(inputs, partitionCount="PartitionCount", spreadLevel="SpreadLevel"),
        **tag_sets(aws, inputs, "placement-group"),
    )
    return str(inputs["name"])


def _read_placement_group(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribePlacementGroups", "PlacementGroups", GroupNames=[identity])
    if found is None:
        return None
    return {
        "arn": found["GroupArn"],
        "placementGroupId": found["GroupId"],
        "name": identity,
        "strategy": found["Strategy"],
        **tags_of(aws, found),
    }


# -- Volumes, snapshots, attachments


def _create_volume(aws: Aws, inputs: Values) -> str:
    identity = aws.ec2(
        "CreateVolume",
        AvailabilityZone=inputs["availabilityZone"],
        **pick(
            inputs, size="Size", type="VolumeType", iops="Iops", throughput="Throughput",
            encrypted="Encrypted", kmsKeyId="KmsKeyId", snapshotId="SnapshotId",
        ),
        **tag_sets(aws, inputs, "volume"),
    )["VolumeId"]  # fmt: skip
    _wait_volume(aws, identity, "available")
    return str(identity)


def _wait_volume(aws: Aws, identity: str, state: str) -> None:
    while (
        _found(aws, "DescribeVolumes", "Volumes", VolumeIds=[identity], absent=())["State"] != state
    ):
        aws.wait(0.1)


def _read_volume(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribeVolumes", "Volumes", VolumeIds=[identity])
    if found is None:
        return None
    arn = f"arn:aws:ec2:{aws.region}:{aws.account}:volume/{identity}"
    return {
        "arn": arn,
        "availabilityZone": found["AvailabilityZone"],
        "size": found["Size"],
        "type": found["VolumeType"],
        "encrypted": found["Encrypted"],
        "iops": found.get("Iops"),
        "throughput": found.get("Throughput"),
        "snapshotId": found.get("SnapshotId", ""),
        **tags_of(aws, found),
    }


def _change_volume(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    change_tags(aws, identity, old, new)
    sizes = {"size": "Size", "type": "VolumeType", "iops": "Iops", "throughput": "Throughput"}
    if wanted := {sizes[name]: new[name] for name in changed & sizes.keys() if name in new}:
        aws.ec2("ModifyVolume", VolumeId=identity, **wanted)


def _delete_volume(aws: Aws, identity: str, state: Values) -> None:
    if state.get("finalSnapshot"):
        _create_snapshot(aws, {"volumeId": identity, "tags": state.get("tags", {})})
    _delete(aws, "DeleteVolume", VolumeId=identity)


def _create_snapshot(aws: Aws, inputs: Values) -> str:
    identity = aws.ec2(
        "CreateSnapshot",
        VolumeId=inputs["volumeId"],
        **pick(inputs, description="Description"),
        **tag_sets(aws, inputs, "snapshot"),
    )["SnapshotId"]
    while (
        aws.ec2("DescribeSnapshots", SnapshotIds=[identity])["Snapshots"][0]["State"] == "pending"
    ):
        aws.wait(0.1)
    return str(identity)


def _read_snapshot(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribeSnapshots", "Snapshots", SnapshotIds=[identity])
    if found is None:
        return None
    return {
        "arn": f"arn:aws:ec2:{aws.region}::snapshot/{identity}",
        "volumeId": found["VolumeId"],
        "volumeSize": found["VolumeSize"],
        "ownerId": found["OwnerId"],
        "encrypted": found["Encrypted"],
        **tags_of(aws, found),
    }


def _create_attachment(aws: Aws, inputs: Values) -> str:
    device, volume, machine = inputs["deviceName"], inputs["volumeId"], inputs["instanceId"]
    aws.ec2("AttachVolume", Device=device, VolumeId=volume, InstanceId=machine)
    digest = hashlib.sha256(f"{device}-{machine}-{volume}".encode()).digest()
    return f"vai-{int.from_bytes(digest[:4])}"


def _read_attachment(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribeVolumes", "Volumes", VolumeIds=[state["volumeId"]])
    rows = found["Attachments"] if found else []
    if not any(row["InstanceId"] == state["instanceId"] for row in rows):
        return None
    return {
        "deviceName": rows[0]["Device"],
        "volumeId": state["volumeId"],
        "instanceId": state["instanceId"],
    }


def _delete_attachment(aws: Aws, identity: str, state: Values) -> None:
    if state.get("skipDestroy") or _read_attachment(aws, identity, state) is None:
        return
    aws.ec2(
        "DetachVolume",
        VolumeId=state["volumeId"],
        InstanceId=state["instanceId"],
        Device=state["deviceName"],
        Force=bool(state.get("forceDetach")),
    )
    _wait_volume(aws, state["volumeId"], "available")


def _change_attachment(
    aws: Aws, identity: str, old: Values, new: Values, changed: set[str]
) -> None:
    """Change nothing: the other inputs act when the volume is detached."""


# -- Addresses


def _create_address(aws: Aws, inputs: Values) -> str:
    identity = aws.ec2("AllocateAddress", Domain="vpc", **tag_sets(aws, inputs, "elastic-ip"))[
        "AllocationId"
    ]
    _associate(aws, str(identity), inputs)
    return str(identity)


def _associate(aws: Aws, identity: str, inputs: Values) -> None:
    target = pick(inputs, instance="InstanceId", networkInterface="NetworkInterfaceId")
    if not target:
        return
    try:
        aws.ec2("AssociateAddress", AllocationId=identity, **target)
    except CallError as error:
        raise PartialFailure(identity, f"associating EC2 EIP ({identity}): {error}") from error


def _read_address(aws: Aws, identity: str, state: Values) -> Outputs | None:
    found = _found(aws, "DescribeAddresses", "Addresses", AllocationIds=[identity])
    if found is None:
        return None
    return {
        "allocationId": identity,
        "associationId": found.get("AssociationId", ""),
        "publicIp": found["PublicIp"],
        "instance": found.get("InstanceId", ""),
        "networkInterface": found.get("NetworkInterfaceId", ""),
        "domain": found["Domain"],
        **tags_of(aws, found),
    }


def _change_address(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    change_tags(aws, identity, old, new)
    if changed & {"instance", "networkInterface"}:
        found = _read_address(aws, identity, old)
        if found and found["associationId"]:
            aws.ec2("DisassociateAddress", AssociationId=found["associationId"])
        _associate(aws, identity, new)


def _delete_address(aws: Aws, identity: str, state: Values) -> None:
    found = _read_address(aws, identity, state)
    if found and found["associationId"]:
        aws.ec2("DisassociateAddress", AssociationId=found["associationId"])
    _delete(aws, "ReleaseAddress", AllocationId=identity)


def _create_association(aws: Aws, inputs: Values) -> str:
    return str(
        aws.ec2(
            "AssociateAddress", AllocationId=inputs["allocationId"], InstanceId=inputs["instanceId"]
        )["AssociationId"]
    )


def _read_association(aws: Aws, identity: str, state: Values) -> Outputs | None:
    rule = {"Name": "association-id", "Values": [identity]}
    rows = aws.ec2("DescribeAddresses", Filters=[rule])["Addresses"]
    if not rows:
        return None
    return {
        "allocationId": rows[0]["AllocationId"],
        "instanceId": rows[0].get("InstanceId", ""),
        "publicIp": rows[0]["PublicIp"],
    }


def _delete_association(aws: Aws, identity: str, state: Values) -> None:
    _delete(aws, "DisassociateAddress", AssociationId=identity)


# -- The rest of the protocol


_ABSENT = ("NotFound", "Unknown")


def _found(
    aws: Aws, operation: str, member: str, absent: tuple[str, ...] = _ABSENT, **parameters: Any
) -> dict[str, Any] | None:
    try:
        rows = aws.ec2(operation, **parameters)[member]
    except CallError as error:
        if error.code.endswith(absent):
            return None
        raise
    return rows[0] if rows else None


def _delete(aws: Aws, operation: str, **parameters: Any) -> None:
    try:
        aws.ec2(operation, **parameters)
    except CallError as error:
        if not error.code.endswith(_ABSENT):
            raise


def _deletion(operation: str, member: str) -> Callable[[Aws, str, Values], None]:
    """Return a deletion that names the object by its id and nothing else."""

    def delete(aws: Aws, identity: str, state: Values) -> None:
        _delete(aws, operation, **{member: identity})

    return delete


RESOURCES: dict[str, Resource] = {
    "aws:ec2/instance:Instance": Resource(
        "EC2 Instance",
        instance.INPUTS,
        instance.create,
        instance.read,
        instance.delete,
        instance.update,
        instance.REPLACED_BY,
        instance.COMPUTED,
        chosen_by_aws=instance.CHOSEN_BY_AWS,
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": Resource(
        "EC2 Launch Template",
        launch_template.INPUTS,
        launch_template.create,
        launch_template.read,
        launch_template.delete,
        launch_template.update,
        frozenset({"name"}),
        ("arn", "latestVersion", "defaultVersion"),
        named="name",
    ),
    "aws:ec2/securityGroup:SecurityGroup": Resource(
        "EC2 Security Group",
        security_group.INPUTS,
        security_group.create,
        security_group.read,
        security_group.delete,
        security_group.update,
        frozenset({"name", "description", "vpcId"}),
        ("arn", "ownerId"),
        named="name",
        defaults={"description": "Managed by Pulumi"},
    ),
    "aws:ec2/keyPair:KeyPair": Resource(
        "EC2 Key Pair",
        frozenset({"keyName", "publicKey", "tags"}),
        _create_key,
        _read_key,
        _deletion("DeleteKeyPair", "KeyName"),
        _change_key,
        frozenset({"keyName", "publicKey"}),
        ("arn", "keyPairId", "fingerprint"),
        frozenset({"publicKey"}),
        named="keyName",
    ),
    "aws:ec2/placementGroup:PlacementGroup": Resource(
        "EC2 Placement Group",
        frozenset({"name", "strategy", "partitionCount", "spreadLevel", "tags"}),
        _create_placement_group,
        _read_placement_group,
        _deletion("DeletePlacementGroup", "GroupName"),
        replaced_by=frozenset({"name", "strategy", "partitionCount", "spreadLevel"}),
        computed=("arn", "placementGroupId"),
        required=frozenset({"strategy"}),
        named="name",
    ),
    "aws:ebs/volume:Volume": Resource(
        "EBS Volume",
        frozenset({
            "availabilityZone", "encrypted", "finalSnapshot", "iops", "kmsKeyId", "size", "snapshotId",
            "tags", "throughput", "type",
        }),
        _create_volume,
        _read_volume,
        _delete_volume,
        _change_volume,
        frozenset({"availabilityZone", "encrypted", "kmsKeyId", "snapshotId"}),
        required=frozenset({"availabilityZone"}),
        chosen_by_aws=frozenset({
            "encrypted", "iops", "kmsKeyId", "size", "snapshotId", "throughput", "type",
        }),
    ),
    "aws:ebs/snapshot:Snapshot": Resource(
        "EBS Snapshot",
        frozenset({"volumeId", "description", "tags"}),
        _create_snapshot,
        _read_snapshot,
        _deletion("DeleteSnapshot", "SnapshotId"),
        replaced_by=frozenset({"volumeId", "description"}),
        computed=("arn", "volumeSize", "ownerId"),
        required=frozenset({"volumeId"}),
    ),
    "aws:ec2/volumeAttachment:VolumeAttachment": Resource(
        "EBS Volume Attachment",
        frozenset({"deviceName", "volumeId", "instanceId", "forceDetach", "skipDestroy"}),
        _create_attachment,
        _read_attachment,
        _delete_attachment,
        _change_attachment,
        frozenset({"deviceName", "volumeId", "instanceId"}),
        (),
        frozenset({"deviceName", "volumeId", "instanceId"}),
    ),
    "aws:ec2/eip:Eip": Resource(
        "EC2 EIP",
        frozenset({"domain", "instance", "networkInterface", "tags"}),
        _create_address,
        _read_address,
        _delete_address,
        _change_address,
        frozenset({"domain"}),
        ("allocationId", "associationId", "publicIp", "instance", "networkInterface"),
    ),
    "aws:ec2/eipAssociation:EipAssociation": Resource(
        "EC2 EIP Association",
        frozenset({"allocationId", "instanceId"}),
        _create_association,
        _read_association,
        _delete_association,
        replaced_by=frozenset({"allocationId", "instanceId"}),
        computed=("publicIp",),
    ),
}  # fmt: skip
