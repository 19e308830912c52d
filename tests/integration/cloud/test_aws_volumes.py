"""Network volumes on AWS from their document to their disks: the real command, the real engine."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from integration.cloud.aws_site import Site, killed_during

pytestmark = pytest.mark.waits

UID = "0123456789abcdef" * 2

VOLUME = """
type: volume
name: data
backend: aws
region: us-east-1
availability_zone: {zone}
{origin}
aws:
  account: "123456789012"
deletion_policy: {policy}
"""


class Disks(Site):
    """An environment with one network volume."""

    def declare_volume(self, origin="size: 10GB", *, policy="retain", zone="us-east-1a"):
        text = VOLUME.format(origin=origin, policy=policy, zone=zone)
        (self.root / "volume.yaml").write_text(text)

    def remove_volume(self):
        (self.root / "volume.yaml").write_text("")

    def disks(self):
        return self.cloud.client().describe_volumes()["Volumes"]

    def the_disk(self):
        (disk,) = self.disks()
        return disk

    def stacks(self):
        return self.pulumi().glob("stacks/volume-*")

    def lose_state(self):
        shutil.rmtree(self.pulumi())

    def pulumi(self):
        return Path(self.variables["FLEETFORM_STATE_HOME"]) / "environments" / UID / "pulumi"

    def volume(self):
        return json.loads(self.run("volume", "show", "data", "--json"))


@pytest.fixture
def site(pulumi, cloud, image, tmp_path):
    """An environment whose account has no disk before, and none after."""
    made = Disks(tmp_path, cloud, image)
    assert made.disks() == []
    yield made
    with made.start("controller", "stop") as process:
        process.communicate(timeout=300)
    for disk in made.disks():
        cloud.client().delete_volume(VolumeId=disk["VolumeId"])
    for snapshot in snapshots(cloud):
        cloud.client().delete_snapshot(SnapshotId=snapshot["SnapshotId"])


def snapshots(cloud):
    mine = [{"Name": "tag-key", "Values": ["fleetform:uid"]}]
    return cloud.client().describe_snapshots(Filters=mine)["Snapshots"]


def test_create_grow_and_delete_with_a_snapshot(site, cloud):
    """A second plan is empty, a larger size is a change in place, and the snapshot outlives the disk."""
    site.declare_volume(policy="snapshot")
    shown = site.run("plan", "--preview")
    print(shown)
    assert "create 1 aws:ebs/volume:Volume" in shown
    assert cloud.calls("CreateVolume") == []
    print(site.run("apply", "-y"))
    disk = site.the_disk()
    assert (disk["Size"], disk["Encrypted"], disk["AvailabilityZone"]) == (10, True, "us-east-1a")
    assert site.plan()["resource_changes"] == []
    listed = site.run("volume", "list")
    assert all(one in listed for one in (disk["VolumeId"], "us-east-1a", "10GB"))
    assert site.volume()["disk"] == disk["VolumeId"]

    site.declare_volume("size: 20GB", policy="snapshot")
    site.run("apply", "-y")
    assert (site.the_disk()["VolumeId"], site.the_disk()["Size"]) == (disk["VolumeId"], 20)

    site.declare_volume("size: 5GB", policy="snapshot")
    assert "disks cannot shrink" in site.run("plan")
    site.run("apply", "-y", code=3)

    site.remove_volume()
    print(site.run("plan"))
    site.run("apply", "-y")
    assert site.disks() == []
    (snapshot,) = snapshots(cloud)
    assert snapshot["VolumeId"] == disk["VolumeId"]
    assert snapshot["SnapshotId"] in site.run("volume", "list", "--snapshots")
    assert not list(site.stacks())


def test_data_is_deleted_only_where_it_is_allowed(site):
    """Without `--allow-destroy` the disk stays."""
    site.declare_volume(policy="delete")
    site.run("apply", "-y")
    site.remove_volume()
    shown = site.run("apply", "-y", code=3)
    assert f"all data on {site.the_disk()['VolumeId']} in us-east-1a" in shown
    site.run("apply", "-y", "--allow-destroy")
    assert site.disks() == []


def test_another_zone_is_another_disk(site):
    """The plan shows it as a replacement, which needs `--allow-destroy`, and the old disk stays."""
    site.declare_volume()
    site.run("apply", "-y")
    first = site.the_disk()["VolumeId"]
    site.declare_volume(zone="us-east-1b")
    shown = site.run("apply", "-y", code=3)
    assert f"the new disk is empty; {first} in us-east-1a stays, with its data" in shown
    assert "AWS bills it until you delete it (`deletion_policy: retain`)" in shown
    assert "--allow-destroy" in shown
    assert site.the_disk()["VolumeId"] == first
    site.run("apply", "-y", "--allow-destroy")
    assert {one["AvailabilityZone"] for one in site.disks()} == {"us-east-1a", "us-east-1b"}
    (released,) = (one for one in site.disks() if one["VolumeId"] == first)
    assert {one["Key"] for one in released["Tags"]}.isdisjoint(
        {"fleetform:environment", "fleetform:uid"}
    )
    assert site.plan()["resource_changes"] == []


def test_a_registered_disk_is_never_deleted(site, cloud):
    """It is found by its id in its zone, and the removal of its document leaves it."""
    made = cloud.client().create_volume(AvailabilityZone="us-east-1b", Size=7, VolumeType="gp3")
    disk = made["VolumeId"]
    site.declare_volume(f"volume_id: {disk}")
    shown = site.run("apply", "-y", code=1)
    assert f"{disk} is in zone us-east-1b, and the document says us-east-1a" in shown
    site.declare_volume(f"volume_id: {disk}", zone="us-east-1b")
    site.run("apply", "-y")
    assert site.volume()["size_bytes"] == 7 << 30
    site.remove_volume()
    site.run("apply", "-y", "--allow-destroy")
    assert site.the_disk()["VolumeId"] == disk


def test_a_disk_that_the_ledger_does_not_know(site, cloud):
    """A second one of its name would be empty, so none is created; by its id it can be used."""
    tags = {"Name": "data", "fleetform:environment": UID, "fleetform:uid": "f" * 32}
    named = [{"Key": key, "Value": value} for key, value in tags.items()]
    made = cloud.client().create_volume(
        AvailabilityZone="us-east-1a",
        Size=7,
        TagSpecifications=[{"ResourceType": "volume", "Tags": named}],
    )
    disk = made["VolumeId"]
    site.declare_volume()
    assert f"has the disk {disk} of this name already" in site.run("apply", "-y", code=1)
    site.declare_volume(f"volume_id: {disk}")
    site.run("apply", "-y")
    assert site.the_disk()["VolumeId"] == site.volume()["disk"] == disk


def test_kill_during_a_create(site, cloud):
    """The next apply finds the disk that the killed one asked for."""
    site.declare_volume()
    before = len(cloud.calls("CreateVolume"))
    killed_during(site, cloud, "CreateVolume")
    site.run("apply", "-y")
    assert site.volume()["disk"] == site.the_disk()["VolumeId"]
    assert len(cloud.calls("CreateVolume")) == before + 1


def test_a_lost_state_is_rebuilt(site, cloud):
    """The disk is found by its tag, and grown; one that is gone is not created a second time."""
    site.declare_volume()
    site.run("apply", "-y")
    disk = site.the_disk()["VolumeId"]
    site.run("controller", "stop")
    site.lose_state()
    site.declare_volume("size: 12GB")
    site.run("apply", "-y")
    assert (site.the_disk()["VolumeId"], site.the_disk()["Size"]) == (disk, 12)

    cloud.client().delete_volume(VolumeId=disk)
    site.lose_state()
    site.declare_volume("size: 13GB")
    assert f"{disk} no longer exists" in site.run("apply", "-y", code=1)
    assert site.disks() == []
    assert f"there, as {disk} in us-east-1a" in site.run("drift", "--detailed-exitcode", code=2)
    site.run("apply", "-y", "--allow-destroy", "--replace", "volume/data")
    assert site.volume()["disk"] == site.the_disk()["VolumeId"] != disk
    site.run("drift", "--detailed-exitcode")
