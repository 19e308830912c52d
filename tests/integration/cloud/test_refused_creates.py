"""Hosts that AWS refuses for what the fleet declares: nothing exists, so nothing is waited for when that is corrected."""

from __future__ import annotations

import json

import pytest

from integration.cloud.aws_site import own_groups

pytestmark = pytest.mark.waits

MISTAKES = [
    ("  image: ami-0123456789abcdef0\n", "the image ami-0123456789abcdef0 does not exist"),
    ("availability_zones: [us-east-1z]\n", "no such availability zone"),
]


def declare(site, nodes, mistake=""):
    site.declare(nodes, more=mistake)
    if "image" in mistake:
        path = site.root / "fleet.yaml"
        path.write_text(path.read_text().replace(f"  image: {site.image}\n", ""))


@pytest.mark.parametrize(("mistake", "cause"), MISTAKES, ids=["image", "zone"])
def test_a_mistake_is_corrected(site, cloud, mistake, cause):
    """Nothing is recorded of hosts that were refused; corrected, they are created at once, and then nothing is left."""
    declare(site, 2, mistake)
    said = site.run("apply", "-y", code=1)
    assert cause in " ".join(said.split())
    (record,) = (site.root.parent / "state").glob("environments/*/pulumi/stacks/*/batch.json")
    assert json.loads(record.read_text())["hosts"] == {}
    shown = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
    assert {one["state"] for one in shown["instances"]} == {"not created"}
    declare(site, 2)
    said = site.run("apply", "-y", "--allow-destroy")
    assert "was cut off" not in said
    assert sorted(one.tags["Name"] for one in cloud.instances()) == ["gpus-0", "gpus-1"]
    declare(site, "0..0")
    site.run("apply", "-y", "--allow-destroy")
    assert cloud.instances() == []
    assert own_groups(cloud) == []
