"""A fleet on AWS from its document to its instances: the real command, the real engine."""

from __future__ import annotations

import json
import os
import time

import pytest

from cloud import faults
from cloud.cli_record import CliRecord
from integration.cloud.aws_site import killed_during, own_groups

pytestmark = pytest.mark.waits

CREATES = ("RunInstances", "CreateSecurityGroup", "ImportKeyPair")


def test_create_plan_again_and_remove(site, cloud):
    """Plans name the offer, apply creates the instances once, a second plan is empty, and nothing is left behind."""
    site.declare(2)
    shown = site.run("plan")
    print(shown)
    assert "g5.xlarge in us-east-1" in shown
    assert cloud.calls("RunInstances") == []

    said = site.run("apply", "-y", "--allow-destroy")
    print(said)
    assert len(cloud.instances()) == 2
    assert site.plan()["resource_changes"] == []

    site.declare(1)
    site.run("apply", "-y", "--allow-destroy")
    assert len(cloud.instances()) == 1
    assert len(cloud.calls("RunInstances")) == 2

    site.declare(0)
    site.run("apply", "-y", "--allow-destroy")
    assert cloud.instances() == []

    (row,) = json.loads(site.run("cost", "--format", "json"))
    assert (row["name"], row["hosts"], row["hourly_micros"]) == ("gpus", 2, 0)
    assert row["spent_micros"] == pytest.approx(row["time_ms"] * 1_006_000 / 3_600_000, rel=0.01)
    assert "gpus" in site.run("cost", "gpus")


def test_spot_instances(site, cloud):
    """They are asked for once, end when they are taken back, and a plan says that they are spot."""
    site.declare(1, more="spot_policy: spot\n")
    assert "(spot), unknown price" in site.run("plan")
    site.run("apply", "-y")
    (instance,) = cloud.instances()
    assert instance.spot
    options = cloud.calls("RunInstances")[-1].call.parameters["InstanceMarketOptions"][
        "SpotOptions"
    ]
    assert options == {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"}
    assert site.plan()["resource_changes"] == []


def test_a_preview_creates_nothing(site, cloud):
    """The engine names each resource, once: what was previewed is not previewed again, and the account is asked each time."""
    created, asked = len(cloud.calls(*CREATES)), len(cloud.calls("DescribeImages"))
    record = CliRecord(cloud)
    site.declare(2)
    shown = site.run("plan", "--preview")
    assert "1 aws:ec2/keyPair:KeyPair" in shown
    assert "create 2 aws:ec2/instance:Instance" in shown
    (change,) = json.loads(site.run("plan", "--preview", "--format", "json"))["resource_changes"]
    assert [row["name"] for row in change["preview"]][-2:] == ["gpus-0", "gpus-1"]
    assert len(record.starts("preview")) == 1
    assert len(cloud.calls("DescribeImages")) == asked + 2
    assert len(cloud.calls(*CREATES)) == created

    # Apply shows the same before it asks.
    shown = site.run("apply", code=1)
    assert "create 2 aws:ec2/instance:Instance" in shown
    assert "not a terminal" in shown
    assert len(cloud.calls(*CREATES)) == created
    other_plugin = cloud.programs / "pulumi-resource-aws"
    os.utime(other_plugin)
    with site.start("plan", "--preview") as process:
        assert "create 2" in process.communicate()[0]
    assert len(record.starts("preview")) == 2


@pytest.mark.parametrize("call", ["CreateSecurityGroup", "RunInstances"])
def test_kill_of_the_controller_during_a_create(site, cloud, call):
    """After `kill -9` the next apply completes what the killed one began, and nothing exists twice."""
    site.declare(3)
    cloud.inject(faults.slow_create(2.0))
    # Recovery waits for ten minutes for an instance that may not be listed yet, so each is created.
    killed_during(site, cloud, call, calls=3 if call == "RunInstances" else 1)
    site.run("apply", "-y")
    uids = [one.tags["fleetform:uid"] for one in cloud.instances()]
    assert len(uids) == len(set(uids)) == 3
    assert len(own_groups(cloud)) == 1
    assert site.plan()["resource_changes"] == []


def test_a_killed_apply_is_not_resumed_unasked(site, cloud):
    """Where no nodes are declared again, plan and apply say that three are still created, and apply asks first."""
    site.declare(0)
    site.run("apply", "-y")
    site.declare(3)
    killed_during(site, cloud, "CreateSecurityGroup")
    created = len(cloud.calls("RunInstances"))
    site.declare(0)
    said = site.run("plan", "--detailed-exitcode", code=3)
    print(said)
    assert "Still to come: update fleet/gpus. fleet/gpus is declared differently now" in said
    assert "as declared." not in said
    said = site.run("apply", code=1)
    print(said)
    assert "nodes: 0 → 3" in said
    assert "cannot ask for confirmation" in said
    assert len(cloud.calls("RunInstances")) == created
    print(site.run("apply", "-y", "--allow-destroy"))
    assert cloud.instances() == []
    assert "Your environment is as declared." in site.run("plan", "--detailed-exitcode")


def test_kill_of_the_controller_during_a_release(site, cloud):
    """The next apply deletes what the killed one had not, and no other instance."""
    site.declare(3)
    site.run("apply", "-y")
    site.run("controller", "stop")
    site.declare(1)
    killed_during(site, cloud, "TerminateInstances")
    site.run("apply", "-y")
    assert [one.tags["Name"] for one in cloud.instances()] == ["gpus-0"]
    assert site.plan()["resource_changes"] == []


def test_an_instance_is_wanted_again_while_it_is_deleted(site, cloud):
    """It is deleted all the same, and its place gets another one: however far the deletion came, the fleet is whole."""
    site.declare(2)
    site.run("apply", "-y")
    site.run("controller", "stop")
    before = {one.id for one in cloud.instances()}
    site.declare(0)
    killed_during(site, cloud, "TerminateInstances")
    site.declare(1)
    site.run("apply", "-y", "--allow-destroy")
    deadline = time.monotonic() + 120
    while [one.tags["Name"] for one in cloud.instances()] != ["gpus-0"]:
        assert time.monotonic() < deadline, site.run("fleet", "show", "gpus")
        time.sleep(0.2)
    assert not before & {one.id for one in cloud.instances()}


def test_without_the_pulumi_cli(site, cloud):
    """Commands that need no cloud work, and the others say in one sentence what to install."""
    site.variables["PATH"] = os.environ["PATH"]
    site.declare(1)
    assert "g5.xlarge" in site.run("plan")
    sentence = "the Pulumi CLI is not installed"
    assert sentence in site.run("plan", "--preview", code=1)
    assert sentence in site.run("apply", "-y", code=1)
    assert cloud.instances() == []
    site.variables["PATH"] = f"{cloud.programs}:{os.environ['PATH']}"


def test_a_machine_that_cannot_control_the_fleet(site):
    """Without the Pulumi CLI no process takes the place of a controller that has it, nor that of none."""
    with_cli = site.variables["PATH"]
    site.declare(1)
    site.run("apply", "-y")
    controller = pid_of_controller(site)

    site.variables["PATH"] = os.environ["PATH"]
    lacking = "this machine cannot control fleet/gpus: the Pulumi CLI is not installed"
    assert "No changes" in site.run("apply", "-y")
    assert lacking in site.run("serve", code=1)
    site.declare(1, more='env: {A: "1"}\n')
    said = site.run("apply", "-y")
    assert "stays the controller" in said
    assert lacking in said
    assert site.plan()["resource_changes"] == []
    assert pid_of_controller(site) == controller

    site.run("controller", "stop")
    site.declare(1, more='env: {A: "2"}\n')
    assert lacking in site.run("apply", "-y", code=1)
    site.variables["PATH"] = with_cli
    site.run("apply", "-y")


def pid_of_controller(site):
    return json.loads(site.run("controller", "show", "--format", "json"))["pid"]
