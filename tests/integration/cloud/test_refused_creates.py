"""Hosts that AWS refuses for what the fleet declares: nothing exists, so nothing is waited for when that is corrected."""

from __future__ import annotations

import json

import pytest

from cloud import faults
from integration.cloud.aws_site import own_groups

pytestmark = pytest.mark.waits


def test_hosts_that_are_refused(site, cloud):
    """An image may go after the preview: no host is recorded, a controller stays, the next apply creates them at once, and then nothing is left."""
    site.declare(2)
    gone = faults.refused("RunInstances", "InvalidAMIID.NotFound", "no ami-0abc", times=2)
    cloud.inject(gone)
    said = site.run("apply", "-y", code=1)
    assert "the background controller" in said
    (record,) = (site.root.parent / "state").glob("environments/*/pulumi/stacks/*/batch.json")
    assert json.loads(record.read_text())["hosts"] == {}
    shown = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
    assert {one["state"] for one in shown["instances"]} == {"not created"}
    said = site.run("apply", "-y")
    assert "was cut off" not in said
    assert sorted(one.tags["Name"] for one in cloud.instances()) == ["gpus-0", "gpus-1"]
    site.declare("0..0")
    site.run("apply", "-y", "--allow-destroy")
    assert cloud.instances() == []
    assert own_groups(cloud) == []


def test_a_replacement_that_is_refused(site, cloud):
    """The apply that replaces hosts ends with that failure, and the host that is not replaced yet stays."""
    site.declare(2)
    site.run("apply", "-y")
    site.run("controller", "stop")
    gone = faults.refused("RunInstances", "InvalidAMIID.NotFound", "no ami-0abc", times=100)
    cloud.inject(gone)
    site.declare(2, more="  root_disk: {iops: 4000}\n")
    said = site.run("apply", "-y", "--allow-destroy", code=1)
    assert (
        "error: fleet/gpus: host gpus-0 is not created: the image ami-0abc does not exist" in said
    )
    assert [one.tags["Name"] for one in cloud.instances()] == ["gpus-1"]
    site.run("controller", "stop")
