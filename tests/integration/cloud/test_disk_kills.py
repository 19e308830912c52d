"""
`kill -9` of the controller, of the runner and of the CLI while a disk is created, attached, detached and deleted.

The front has every disk and its attachments, and the runs tell what is on the disk: one that was formatted a second time is empty.
"""

from __future__ import annotations

import os
import random
import signal

import pytest

from cloud import faults
from cloud.front import wait_until
from integration.cloud.test_aws_join import PATIENCE_SECONDS, VOLUME, own_disks
from integration.cloud.test_aws_kills import Killing

HOSTS_BOOT = True

pytestmark = [pytest.mark.waits, pytest.mark.crash]

KILLS = int(os.environ.get("FLEETFORM_TEST_DISK_KILLS", "4"))
"""`make crash` makes twenty."""

FLEET = "run_as: root\navailability_zones: [us-east-1a]\n"

RUN = """
type: task
name: write-{number}
fleets: [gpus]
volumes: ["data:/mnt/data"]
commands: ["cat /mnt/data/lines 2> /dev/null || true", "echo {number} >> /mnt/data/lines"]
"""


def test_kills_during_attach_and_detach(site, cloud, hosts, count):
    """Each run finds what all others wrote, and afterwards the one disk is attached to nothing, unmounted before."""
    (site.root / "volume.yaml").write_text(VOLUME)
    site.declare(1, more=FLEET)
    site.run("apply", "-y")
    (disk,) = own_disks(cloud)
    killing = Killing(site, random.Random(KILLS))
    for number in range(KILLS):
        (site.root / "run.yaml").write_text(RUN.format(number=number))
        call = ("AttachVolume", "DetachVolume")[number % 2]
        _kill_controller(killing, call, is_held=number % 4 < 2)
        site.run("apply", "-y")
        killing.end_background()
        assert site.run("logs", f"write-{number}").split() == [str(one) for one in range(number)]
        (left,) = own_disks(cloud)
        assert (left["VolumeId"], left["State"]) == (disk["VolumeId"], "available")
        assert hosts.disks.torn == []
    assert site.plan()["resource_changes"] == []
    count("kills during attach and detach", dict(killing.kills))


def _kill_controller(killing, call, *, is_held):
    """Kill an apply while its call waits, which is made afterwards, or some time after the call was answered."""
    cloud, before = killing.site.cloud, len(killing.site.cloud.calls(call))
    waiting = cloud.inject(faults.held(call)) if is_held else None
    apply = killing.start("apply", "-y")
    if waiting is not None:
        killing.wait(waiting.arrived.is_set, apply)
    else:
        killing.wait(lambda: len(cloud.calls(call)) > before, apply)
        killing.wait(lambda: False, apply, seconds=killing.dice.uniform(0, 1.5))
    apply.kill()
    apply.wait()
    if waiting is not None:
        cloud.remove(waiting)
        wait_until(lambda: len(cloud.calls(call)) > before, PATIENCE_SECONDS)
    killing.kills[call] += (apply.returncode == -signal.SIGKILL) + killing.end_background()


@pytest.mark.parametrize("victim", ["controller", "runner", "cli"])
def test_kills_during_create_and_delete(site, cloud, count, victim):
    """The next apply finds the disk, or that it is gone: it is created once, and nothing is left."""
    killing = Killing(site, random.Random(1))
    created = len(cloud.calls("CreateVolume"))
    for call, document in (("CreateVolume", VOLUME), ("DeleteVolume", "")):
        (site.root / "volume.yaml").write_text(document)
        waiting = cloud.inject(faults.held(call))
        apply = killing.start("apply", "-y", "--allow-destroy")
        killing.wait(waiting.arrived.is_set, apply)
        killing.kill(apply.pid, victim)
        cloud.remove(waiting)
        killing.wait(lambda: False, apply, seconds=2)
        apply.kill()
        apply.wait()
        killing.end_background()
        if (site.root / "volume.yaml").read_text() and victim == "cli":
            assert "+ volume data" in site.run("plan")
            assert "us-east-1a   1GB  delete" in site.run("volume", "list")
        with killing.start("apply", "-y", "--allow-destroy") as again:
            again.wait(PATIENCE_SECONDS)
        assert again.returncode == 0, killing.said()
        killing.end_background()
        assert len(own_disks(cloud)) == int(call == "CreateVolume")
        assert "No changes" in site.run("plan")
        killing.kills[call] += 1
    assert len(cloud.calls("CreateVolume")) == created + 1
    assert not list(site.root.parent.glob("state/environments/*/pulumi/stacks/volume-*"))
    count(f"kills of the {victim} during create and delete of a disk", dict(killing.kills))


def test_a_disk_that_is_attached_elsewhere(site, cloud, image):
    """The run says to which instance and how to detach it, nothing takes it away, and then it runs."""
    (site.root / "volume.yaml").write_text(VOLUME)
    site.declare(1, more=FLEET)
    site.run("apply", "-y")
    (disk,) = own_disks(cloud)
    (found,) = cloud.client().run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1,
        Placement={"AvailabilityZone": "us-east-1a"},
    )["Instances"]  # fmt: skip
    other, where = found["InstanceId"], {"VolumeId": disk["VolumeId"]}
    cloud.client().get_waiter("instance_running").wait(InstanceIds=[other])
    cloud.client().attach_volume(**where, InstanceId=other, Device="/dev/sdf")
    (site.root / "run.yaml").write_text(RUN.format(number=0))
    site.run("apply", "-y", "--detach")
    said = f"{disk['VolumeId']} is attached to {other}, which is no host that mounts it"
    wait_until(lambda: said in site.run("why", "write-0"), PATIENCE_SECONDS)
    print(site.run("why", "write-0"))
    (held,) = own_disks(cloud)
    assert [one["InstanceId"] for one in held["Attachments"]] == [other]
    cloud.client().detach_volume(**where)
    cloud.client().terminate_instances(InstanceIds=[other])
    wait_until(lambda: "done" in site.run("ps", "--all"), PATIENCE_SECONDS)
    wait_until(lambda: own_disks(cloud)[0]["State"] == "available", PATIENCE_SECONDS)
