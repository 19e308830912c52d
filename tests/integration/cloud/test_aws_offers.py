"""Offers that AWS refuses: the next one is tried, what was tried is shown, and nothing is asked for twice."""

from __future__ import annotations

import dataclasses
import json
import time
from pathlib import Path

import pytest

from cloud import faults
from integration.cloud.aws_site import FLEET, killed_during, until

pytestmark = pytest.mark.waits

TYPES = "instance_types: [g5.xlarge, g5.2xlarge]"


def declare(site, nodes, *, more=""):
    text = FLEET.format(nodes=nodes, image=site.image).replace("instance_types: [g5.xlarge]", TYPES)
    (site.root / "fleet.yaml").write_text(text + more)


def refuse(cloud, instance_type, name=None):
    """Have no capacity for a type, or for one host of it; return when each call was refused."""
    return meet(cloud, faults.no_capacity(instance_type), instance_type, name)


def watch(cloud, instance_type):
    """Return when each call for a type arrived."""
    return meet(cloud, faults.slow_create(0.0), instance_type)


def meet(cloud, fault, instance_type, name=None):
    times = []

    def meets(parameters):
        tags = [tag for one in parameters["TagSpecifications"] for tag in one["Tags"]]
        is_named = name is None or {"Key": "Name", "Value": name} in tags
        met = parameters["InstanceType"] == instance_type and is_named
        times.extend([time.monotonic()] if met else [])
        return met

    cloud.inject(dataclasses.replace(fault, when=meets))
    return times


def uid_of(answered):
    tags = [tag for one in answered.call.parameters["TagSpecifications"] for tag in one["Tags"]]
    return next(tag["Value"] for tag in tags if tag["Key"] == "fleetform:uid")


def types(cloud):
    return {one.tags["Name"]: one.type for one in cloud.instances()}


def test_the_next_offer_is_tried(site, cloud):
    """One apply creates the hosts by the second offer; another controller knows what was refused."""
    declare(site, 2)
    refused, others = refuse(cloud, "g5.xlarge"), watch(cloud, "g5.2xlarge")
    said = site.run("apply", "-y")
    print(
        f"the next offer {others[0] - refused[-1]:.1f} s after the refusal, {refused[-1] - refused[0]:.1f} s of tries"
    )
    assert types(cloud) == {"gpus-0": "g5.2xlarge", "gpus-1": "g5.2xlarge"}
    reason = "no capacity (InsufficientInstanceCapacity)"
    following = "next is g5.2xlarge in us-east-1, $1.22/h instead of $1.01/h"
    refusal = f"fleet gpus: g5.xlarge in us-east-1 was refused: {reason}; {following}"
    assert said.count(refusal) == 1
    assert site.plan()["resource_changes"] == []

    site.run("controller", "stop")
    shown = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
    assert [(one["instance_type"], one["problem"]) for one in shown["offers"]] == [
        ("g5.xlarge", reason),
        ("g5.2xlarge", ""),
    ]
    assert reason in site.run("fleet", "show", "gpus")
    calls = len(refused)
    declare(site, 3)
    site.run("apply", "-y")
    assert types(cloud)["gpus-2"] == "g5.2xlarge"
    assert len(refused) == calls


def test_hosts_that_were_created_stay(site, cloud):
    """Of a batch that is refused in part, only the rest goes to the next offer."""
    declare(site, 2)
    refuse(cloud, "g5.xlarge", name="gpus-1")
    site.run("apply", "-y")
    assert types(cloud) == {"gpus-0": "g5.xlarge", "gpus-1": "g5.2xlarge"}
    assert site.plan()["resource_changes"] == []


def test_a_cluster_is_created_as_a_whole(site, cloud):
    """Of a batch that is refused in part, all hosts are released before others are asked for, under other uids."""
    declare(site, 2, more="placement: cluster\n")
    refuse(cloud, "g5.xlarge", name="gpus-1")
    before = len(cloud.calls())
    site.run("apply", "-y")
    assert types(cloud) == {"gpus-0": "g5.2xlarge", "gpus-1": "g5.2xlarge"}
    calls = [one for one in cloud.calls()[before:] if not one.code]
    names = [
        one.operation for one in calls if one.operation in {"RunInstances", "TerminateInstances"}
    ]
    assert names == ["RunInstances", "TerminateInstances", "RunInstances", "RunInstances"]
    created = [uid_of(one) for one in calls if one.operation == "RunInstances"]
    assert len(set(created)) == 3
    assert site.plan()["resource_changes"] == []


def test_kill_of_the_controller_while_a_cluster_is_released(site, cloud):
    """The next apply releases what the killed one had created, and asks for all hosts under uids that never existed."""
    site.list_soon()
    declare(site, 2, more="placement: cluster\n")
    refuse(cloud, "g5.xlarge", name="gpus-1")
    killed_during(site, cloud, "TerminateInstances")
    site.run("apply", "-y")
    assert types(cloud) == {"gpus-0": "g5.2xlarge", "gpus-1": "g5.2xlarge"}
    uids = [one.tags["fleetform:uid"] for one in cloud.instances(ended=True)]
    assert len(set(uids)) == len(uids)
    assert site.plan()["resource_changes"] == []


def test_no_offer_is_left(site, cloud):
    """The apply fails with what was tried, asks for nothing again before the time, and waits if the fleet retries; a person ends the wait."""
    declare(site, 1)
    cloud.front.catalog.vcpus["L-DB2E81BA"] = 0
    try:
        said = site.run("apply", "-y", code=1)
        for name in ("g5.xlarge", "g5.2xlarge"):
            assert f"{name} in us-east-1: quota used up (L-DB2E81BA)" in said
        calls = len(cloud.calls("RunInstances"))
        assert "no offer is left" in site.run("apply", "-y", code=1)
        declare(site, 1, more="retry: {on: [no-capacity], duration: 1h}\n")
        said = site.run("apply", "-y")
        assert "waiting for capacity until " in said
        shown = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
        assert [one["state"] for one in shown["instances"]] == ["waiting for capacity"]
        assert shown["fleet"]["capacity"]["cpu_millicores"] == 0
        assert len(cloud.calls("RunInstances")) == calls
    finally:
        del cloud.front.catalog.vcpus["L-DB2E81BA"]
    assert cloud.instances() == []
    assert "for 1 host" in site.run("fleet", "retry", "gpus")
    until(cloud.instances)
    (site.root / "fleet.yaml").unlink()
    site.run("apply", "-y", "--allow-destroy")
    folder = Path(site.variables["FLEETFORM_STATE_HOME"])
    assert list(folder.glob("environments/*/pulumi/stacks/*")) == []
