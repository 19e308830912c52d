"""A fleet in two regions, of which the first one has no capacity: hosts, runs, drift and release in both."""

from __future__ import annotations

import pytest

from cloud import faults
from cloud.front import wait_until
from integration.cloud.conftest import PARAMETER

pytestmark = pytest.mark.waits

HOSTS_BOOT = True

RULES = "availability_zones: [{zones}]\nrun_as: root\nsharing: whole\n"

BOTH = ("us-east-1", "us-west-2")

RUN = """
type: task
name: both
fleets: [gpus]
nodes: 2
commands: [echo "hello from rank $FLEETFORM_NODE_RANK"]
"""

SECONDS = 240.0


def declare(site, nodes, regions=BOTH):
    site.image = PARAMETER
    site.declare(nodes, more=RULES.format(zones=", ".join(f"{one}a" for one in regions)))
    path = site.root / "fleet.yaml"
    path.write_text(path.read_text().replace("[us-east-1]", f"[{', '.join(regions)}]"))


def regions(cloud):
    return {one.tags["Name"]: one.region for one in cloud.instances()}


def left_by_tag(cloud):
    found = []
    for region in ("us-east-1", "us-west-2"):
        client = cloud.client(region=region)
        groups = client.describe_security_groups()["SecurityGroups"]
        found += [one["GroupName"] for one in groups if one.get("Tags")]
        found += [one["KeyName"] for one in client.describe_key_pairs()["KeyPairs"]]
        found += [one["VolumeId"] for one in client.describe_volumes()["Volumes"]]
    return found


def test_two_regions(site, cloud):
    """
    A second region replaces no host. The next host is created there, a run on both hosts works, and `nodes: 0..0` leaves nothing in
    either. A region that leaves the list takes its host along, which the plan names and the apply waits for.

    An instance that was terminated by hand, and one that the ledger does not know, are drift in the second region as well, and
    the unknown one keeps the fleet from buying in the first.
    """
    declare(site, 1, BOTH[:1])
    site.run("apply", "-y")
    (first,) = cloud.instances()
    fault = cloud.inject(faults.no_capacity(zone="us-east-1a"))
    declare(site, 2)
    (site.root / "run.yaml").write_text(RUN)
    said = site.run("apply", "-y")
    assert "fleet gpus: g5.xlarge in us-east-1a was refused" in said
    assert regions(cloud) == {"gpus-0": "us-east-1", "gpus-1": "us-west-2"}
    assert first.id in {one.id for one in cloud.instances()}
    assert "hello from rank 1" in site.run("logs", "both")
    shown = site.run("plan")
    print(shown)
    assert "No changes" in shown
    assert "Nothing has drifted" in site.run("drift")

    cloud.remove(fault)
    client = cloud.client(region="us-west-2")
    (west,) = [one for one in cloud.instances() if one.region == "us-west-2"]
    image = cloud.front.catalog.parameters[PARAMETER]
    tags = {**west.tags, "fleetform:uid": "f" * 32}
    (found,) = client.run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    )["Instances"]  # fmt: skip
    unknown = found["InstanceId"]
    client.terminate_instances(InstanceIds=[west.id])
    drift = site.run("drift")
    assert f"{west.id} (expected) → gone" in drift
    assert f"hosts[{unknown}].unknown" in drift
    calls = len(cloud.calls("RunInstances"))
    assert f"does not know: {unknown}" in site.run("apply", "-y", code=3)
    assert len(cloud.calls("RunInstances")) == calls
    site.run("fleet", "terminate", "-y", unknown)
    site.run("apply", "-y")
    assert sorted(regions(cloud)) == ["gpus-0", "gpus-1"]

    (site.root / "run.yaml").unlink()
    declare(site, 2, BOTH[1:])
    assert "us-east-1 is no longer in `regions`" in site.run("plan")
    print(site.run("apply", "-y"))
    assert regions(cloud) == {"gpus-0": "us-west-2", "gpus-1": "us-west-2"}

    declare(site, "0..0")
    site.run("apply", "-y", "--allow-destroy")
    wait_until(lambda: not (cloud.instances() or left_by_tag(cloud)), SECONDS)
