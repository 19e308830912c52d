"""What exists in the cloud against what the ledger has: the real command, the real engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.cloud.aws_site import own_groups

pytestmark = pytest.mark.waits

SHOWN = Path(__file__).parents[3] / "environments" / "cloud"


def test_the_shown_environment(site, cloud, image):
    """
    Plan, apply, an instance that is terminated by hand, and no nodes.

    `drift` names the instance, the next plan replaces it, and nothing is left of the first one, nor of the fleet at the end.
    """
    for name in ("environment.yaml", "fleet.yaml"):
        text = (SHOWN / name).read_text()
        (site.root / name).write_text(text.replace("ami-0f1e2d3c4b5a69788", image))
    assert "$1.006/h each" in site.run("plan")
    assert "create 2 aws:ec2/instance:Instance" in site.run("plan", "--preview")
    site.run("apply", "-y")
    assert site.plan()["resource_changes"] == []
    first, other = cloud.instances()
    cloud.client().terminate_instances(InstanceIds=[first.id])

    said = site.run("drift")
    print(said)
    assert f"{first.id} (expected) → gone" in said
    shown = site.run("fleet", "show", "gpus")
    assert f"{first.id} no longer exists; seen at" in shown
    status = site.run("status")
    assert "1 gone" in status
    assert "; $1.01/h" in status
    assert "$1.01/h" in site.run("fleet", "list")
    (change,) = site.plan()["resource_changes"]
    assert change["action"] == "update"
    print(site.run("apply", "-y"))
    replaced = [one for one in cloud.instances() if one.id != other.id]
    assert [one.tags["Name"] for one in replaced] == [first.tags["Name"]]
    assert replaced[0].tags["fleetform:uid"] != first.tags["fleetform:uid"]
    assert site.plan()["resource_changes"] == []
    assert "Nothing has drifted" in site.run("drift")

    fleet = site.root / "fleet.yaml"
    fleet.write_text(fleet.read_text().replace("nodes: 2", "nodes: 0..0"))
    site.run("apply", "-y", "--allow-destroy")
    assert cloud.instances() == []
    assert own_groups(cloud) == []
    assert cloud.client().describe_key_pairs()["KeyPairs"] == []


def test_an_unknown_instance(site, cloud, image):
    """It is shown, its fleet gets no other instance meanwhile, and a command ends it."""
    site.declare(1)
    site.run("apply", "-y")
    (known,) = cloud.instances()
    tags = {**known.tags, "fleetform:uid": "f" * 32, "Name": "gpus-7"}
    (found,) = cloud.client().run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    )["Instances"]  # fmt: skip
    unknown = found["InstanceId"]
    site.declare(2)
    calls = len(cloud.calls("RunInstances"))
    shown = site.run("plan", "--preview", code=1)
    assert (
        f"preview failed: fleet gpus has instances that the ledger does not know: {unknown}"
        in shown
    )
    assert f"hosts[{unknown}].unknown" in site.run("drift")
    assert "1 host is not in the ledger" in site.run("status", "--exit-code", code=3)
    # What the ledger knows of needs no question to a cloud.
    for command in (("plan", "--detailed-exitcode"), ("apply", "-y")):
        said = site.run(*command, code=3)
        assert f"the ledger does not know: {unknown}" in said
        assert "fleetform fleet terminate" in said
    assert len(cloud.calls("RunInstances")) == calls
    assert {one.id for one in cloud.instances()} == {known.id, unknown}

    refused = site.run("fleet", "terminate", "-y", known.id, code=1)
    assert "is not an unknown instance" in refused
    site.run("fleet", "terminate", "-y", unknown)
    assert [one.id for one in cloud.instances()] == [known.id]
    assert f"hosts[{unknown}]" not in site.run("status") + site.run("plan")
    site.run("apply", "-y")
    assert len(cloud.instances()) == 2
    assert "Nothing has drifted" in site.run("drift")
