"""A disk is detached from hosts of its environment only, and what is wrong with one names where it was looked for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any

import botocore.exceptions
import pytest

from fleetform.providers.contract.errors import AttachedElsewhere, PermanentError
from fleetform.providers.contract.volumes import VolumeRequest
from fleetform.providers.pulumi.aws.disk_calls import DiskCalls
from fleetform.providers.pulumi.aws.volumes import AwsVolumes

OURS = "e" * 32
PLACE = {
    "account": "123456789012",
    "region": "us-east-1",
    "zone": "us-east-1a",
    "encrypted": True,
    "size_gb": 1,
}


@dataclass
class Ec2:
    """One disk, which is attached to an instance with these tags."""

    tags: dict[str, str]
    attached: bool = True
    exists: bool = True
    snapshots: list[str] = field(default_factory=list)

    def describe_volumes(self, **_: Any) -> Any:
        if not self.exists:
            error = {"Code": "InvalidVolume.NotFound", "Message": "The volume does not exist."}
            raise botocore.exceptions.ClientError({"Error": error}, "DescribeVolumes")
        held = [{"State": "attached", "InstanceId": "i-1"}] if self.attached else []
        row = {"VolumeId": "vol-1", "AvailabilityZone": "us-east-1a", "Size": 1}
        return {"Volumes": [{**row, "State": "in-use", "Attachments": held}]}

    def describe_instances(self, **_: Any) -> Any:
        tags = [{"Key": key, "Value": value} for key, value in self.tags.items()]
        return {"Reservations": [{"Instances": [{"InstanceId": "i-1", "Tags": tags}]}]}

    def detach_volume(self, **_: Any) -> None:
        self.attached = False

    def describe_snapshots(self, **_: Any) -> Any:
        self.snapshots.append("asked")
        return {"Snapshots": []}


class Volumes(AwsVolumes):
    """Those of an environment, whose calls are of one client."""

    def __init__(self, client: Ec2) -> None:
        super().__init__(None, None, OURS, None, None)
        self._client = client

    async def _cloud(self, _: VolumeRequest) -> Any:
        return DiskCalls(self._client, "volume data"), None


REQUEST = VolumeRequest("d" * 32, "data", "aws", PLACE, id="vol-1")


def test_a_disk_leaves_a_host_of_its_environment() -> None:
    """The tag of the instance proves it."""
    ec2 = Ec2({"fleetform:environment": OURS})
    asyncio.run(Volumes(ec2).detach(REQUEST, print))
    assert not ec2.attached


@pytest.mark.parametrize("tags", [{}, {"fleetform:environment": "f" * 32}])
def test_a_disk_that_others_have_attached_stays(tags: dict[str, str]) -> None:
    """A controller that was killed before it attached the disk has noted an instance: that proves nothing."""
    ec2, said = Ec2(tags), []
    asyncio.run(Volumes(ec2).detach(REQUEST, said.append))
    assert ec2.attached
    assert said == [
        "volume data: vol-1 stays attached to i-1, which is no host of this environment"
    ]


def test_no_snapshot_of_a_disk_that_others_use() -> None:
    """It would have half of what they write, and the disk would be deleted afterwards."""
    ec2 = Ec2({})
    with pytest.raises(AttachedElsewhere, match="vol-1 is attached to i-1"):
        asyncio.run(Volumes(ec2).snapshot(REQUEST, "o" * 32, print))
    assert ec2.snapshots == []


@pytest.mark.parametrize(
    ("request_", "sentence", "advice"),
    [
        (
            replace(REQUEST, registered="vol-1"),
            "vol-1 does not exist in account 123456789012 in us-east-1",
            "share a snapshot of it with this account",
        ),
        (
            REQUEST,
            "vol-1 no longer exists in account 123456789012 in us-east-1",
            "--replace volume/data",
        ),
    ],
)
def test_a_disk_that_is_not_there(request_: VolumeRequest, sentence: str, advice: str) -> None:
    """The error names the account and the region; a disk by id may be another account's, and is not replaced."""
    with pytest.raises(PermanentError, match=sentence) as caught:
        asyncio.run(Volumes(Ec2({}, exists=False)).attach(request_, "i-1", print))
    assert advice in caught.value.advice
