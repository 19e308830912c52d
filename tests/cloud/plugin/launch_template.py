"""`aws:ec2/launchTemplate:LaunchTemplate`: the only way to network cards of EFA."""

from __future__ import annotations

from typing import Any

from cloud.plugin.client import Aws, CallError
from cloud.plugin.shapes import Outputs, Values, change_tags, pick, tag_list, tag_sets, tags_of

INPUTS = frozenset({
    "ebsOptimized", "imageId", "instanceType", "keyName", "metadataOptions", "name",
    "networkInterfaces", "tags", "tagSpecifications", "updateDefaultVersion", "userData",
    "vpcSecurityGroupIds",
})  # fmt: skip


def _data(inputs: Values) -> dict[str, Any]:
    data = pick(
        inputs, ebsOptimized="EbsOptimized", imageId="ImageId", instanceType="InstanceType",
        keyName="KeyName", userData="UserData", vpcSecurityGroupIds="SecurityGroupIds",
    )  # fmt: skip
    if "metadataOptions" in inputs:
        data["MetadataOptions"] = pick(
            inputs["metadataOptions"], httpEndpoint="HttpEndpoint", httpTokens="HttpTokens",
            httpPutResponseHopLimit="HttpPutResponseHopLimit",
        )  # fmt: skip
    if "networkInterfaces" in inputs:
        data["NetworkInterfaces"] = [_interface(row) for row in inputs["networkInterfaces"]]
    if "tagSpecifications" in inputs:
        data["TagSpecifications"] = [
            {"ResourceType": row["resourceType"], "Tags": tag_list(row["tags"])}
            for row in inputs["tagSpecifications"]
        ]
    return data


def _interface(row: Values) -> dict[str, Any]:
    # The provider declares these two as strings, so that a program can leave them out.
    switches = {
        "associatePublicIpAddress": "AssociatePublicIpAddress",
        "deleteOnTermination": "DeleteOnTermination",
    }
    return {
        **pick(
            row, description="Description", deviceIndex="DeviceIndex", interfaceType="InterfaceType",
            networkCardIndex="NetworkCardIndex", securityGroups="Groups", subnetId="SubnetId",
        ),
        **{theirs: str(row[ours]).lower() == "true" for ours, theirs in switches.items() if ours in row},
    }  # fmt: skip


def create(aws: Aws, inputs: Values) -> str:
    result = aws.ec2(
        "CreateLaunchTemplate",
        LaunchTemplateName=inputs["name"],
        LaunchTemplateData=_data(inputs),
        **tag_sets(aws, inputs, "launch-template"),
    )
    return str(result["LaunchTemplate"]["LaunchTemplateId"])


def read(aws: Aws, identity: str, state: Values) -> Outputs | None:
    try:
        rows = aws.ec2("DescribeLaunchTemplates", LaunchTemplateIds=[identity])["LaunchTemplates"]
    except CallError as error:
        if "NotFound" in error.code:
            return None
        raise
    if not rows:
        return None
    return {
        "arn": f"arn:aws:ec2:{aws.region}:{aws.account}:launch-template/{identity}",
        "name": rows[0]["LaunchTemplateName"],
        "latestVersion": rows[0]["LatestVersionNumber"],
        "defaultVersion": rows[0]["DefaultVersionNumber"],
        **tags_of(aws, rows[0]),
    }


def update(aws: Aws, identity: str, old: Values, new: Values, changed: set[str]) -> None:
    change_tags(aws, identity, old, new)
    if changed - {"tags", "updateDefaultVersion"}:
        version = aws.ec2(
            "CreateLaunchTemplateVersion", LaunchTemplateId=identity, LaunchTemplateData=_data(new)
        )["LaunchTemplateVersion"]["VersionNumber"]
        if new.get("updateDefaultVersion"):
            aws.ec2("ModifyLaunchTemplate", LaunchTemplateId=identity, DefaultVersion=str(version))


def delete(aws: Aws, identity: str, state: Values) -> None:
    try:
        aws.ec2("DeleteLaunchTemplate", LaunchTemplateId=identity)
    except CallError as error:
        if "NotFound" not in error.code:
            raise
