"""Calls about one disk: attached to one instance of its zone, and taken away from it."""

from __future__ import annotations

import asyncio

import pytest

from cloud.aws_cloud import REGION
from cloud.catalog import ACCOUNT
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.pulumi.aws import disk_calls
from fleetform.providers.pulumi.aws.disk_calls import DiskCalls

ZONE = f"{REGION}a"


def launch(cloud, image, zone=ZONE):
    placement = {"AvailabilityZone": zone}
    started = cloud.client().run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, Placement=placement
    )
    return started["Instances"][0]["InstanceId"]


@pytest.fixture
def disk(cloud):
    """An empty disk, which is deleted with all instances."""
    made = cloud.client().create_volume(AvailabilityZone=ZONE, Size=1, VolumeType="gp3")
    yield made["VolumeId"]
    for one in cloud.instances():
        cloud.client().terminate_instances(InstanceIds=[one.id])
    cloud.client().delete_volume(VolumeId=made["VolumeId"])


def play(story):
    return asyncio.run(story())


def test_a_disk_moves_between_instances(cloud, image, disk):
    """It has the first free name of a device on each; a second detach changes nothing."""
    first, second = launch(cloud, image), launch(cloud, image)
    calls = DiskCalls(cloud.client(), "volume data")

    async def story():
        await calls.attach(disk, first)
        assert (await calls.look(disk)).instance == first
        await calls.detach(disk, print)
        await calls.detach(disk, print)
        await calls.attach(disk, second)
        assert (await calls.look(disk)).instance == second
        await calls.detach(disk, print)

    play(story)


def test_a_disk_of_another_zone_or_instance_is_refused(cloud, image, disk):
    """The refusal of EC2 says which."""
    far, near, other = (
        launch(cloud, image, f"{REGION}b"),
        launch(cloud, image),
        launch(cloud, image),
    )
    calls = DiskCalls(cloud.client(), "volume data")

    async def story():
        with pytest.raises(PermanentError, match="not in the same availability zone"):
            await calls.attach(disk, far)
        await calls.attach(disk, near)
        with pytest.raises(PermanentError, match="already attached"):
            await calls.attach(disk, other)
        await calls.detach(disk, print)

    play(story)


def test_an_instance_that_ends_releases_its_disk(cloud, image, disk):
    """Nothing is left to detach."""
    instance = launch(cloud, image)
    calls = DiskCalls(cloud.client(), "volume data")

    async def story():
        await calls.attach(disk, instance)
        cloud.client().terminate_instances(InstanceIds=[instance])
        await calls.detach(disk, print)
        assert (await calls.look(disk)).instance == ""

    play(story)


def test_a_disk_is_taken_away_by_force(cloud, image, disk, monkeypatch):
    """Only after a while, and it is said."""
    monkeypatch.setattr(disk_calls, "FORCE_SECONDS", 2.0)
    instance = launch(cloud, image)
    calls = DiskCalls(cloud.client(), "volume data")
    said = []

    async def story():
        await calls.attach(disk, instance)
        cloud.front.region(ACCOUNT, REGION).stuck.add(disk)
        await calls.detach(disk, said.append)
        assert (await calls.look(disk)).instance == ""

    play(story)
    assert said == [f"the instance of {disk} does not release it: it is detached by force"]


def test_a_snapshot_is_made_once(cloud, disk):
    """The same operation finds the snapshot that it made before."""
    calls = DiskCalls(cloud.client(), "volume data")

    async def story():
        tags = {"Name": "data"}
        first = await calls.snapshot(disk, tags, "o1", print)
        assert await calls.snapshot(disk, tags, "o1", print) == first
        assert await calls.snapshot(disk, tags, "o2", print) != first

    play(story)


def test_a_disk_that_is_gone(cloud):
    """It is no error to look for it."""
    calls = DiskCalls(cloud.client(), "volume data")
    assert play(lambda: calls.look("vol-0f1e2d3c4b5a69788")) is None
