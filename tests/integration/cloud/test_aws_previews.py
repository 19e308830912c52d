"""How often the engine is started: for what changed only."""

from __future__ import annotations

import json

import pytest

from cloud.cli_record import CliRecord
from integration.cloud.aws_site import FLEET

pytestmark = pytest.mark.waits


def declare(site, name, nodes):
    text = FLEET.format(nodes=nodes, image=site.image).replace("name: gpus", f"name: {name}")
    (site.root / f"{name}.yaml").write_text(text)


def test_one_changed_fleet_is_one_preview(site, cloud):
    """Of fleets with several batches only the new batch of the changed one is previewed and created, by one `up`."""
    record = CliRecord(cloud)
    for nodes in (1, 2):
        declare(site, "quiet", nodes)
        declare(site, "changed", nodes)
        site.run("apply", "-y")
    site.run("controller", "stop")
    before = len(record.starts())
    assert site.plan()["resource_changes"] == []
    assert "1 to update" not in site.run("plan", "--preview")
    assert len(record.starts()) == before

    declare(site, "changed", 3)
    assert "create 1 aws:ec2/instance:Instance" in site.run("plan", "--preview")
    assert [one.command for one in record.starts()[before:]] == ["version", "stack init", "preview"]
    site.run("plan", "--preview")
    assert len(record.starts()) == before + 3
    site.run("apply", "-y")
    commands = [one.command for one in record.starts()[before + 3 :]]
    assert commands == ["version", "stack init", "up", "stack history", "stack export"]
    assert len(cloud.instances()) == 5


def test_no_preview_is_shown_as_new_without_the_account(site, cloud):
    """What was previewed before fails with credentials that AWS refuses, and so does the preview of a release."""
    site.declare(1)
    site.run("apply", "-y")
    site.run("controller", "stop")
    site.declare(2)
    assert "create 1 aws:ec2/instance:Instance" in site.run("plan", "--preview")
    key = site.variables["AWS_ACCESS_KEY_ID"]
    site.variables["AWS_ACCESS_KEY_ID"] = "AKIAWRONG"
    for nodes in (2, 0):
        site.declare(nodes)
        shown = site.run("plan", "--preview", code=1)
        assert "previewed in the clouds, where 1 preview failed" in shown
        assert "aws:ec2/instance:Instance" not in shown
        assert "nothing was applied" in site.run("apply", "-y", "--allow-destroy", code=1)
    site.declare(1)
    assert "previewed in the clouds" not in site.run("plan", "--preview")
    site.variables["AWS_ACCESS_KEY_ID"] = key
    assert len(cloud.instances()) == 1


WRONG = {
    "account": ("999999999999", "the credentials are of account 123456789012"),
    "image": ("ami-0123456789abcdef0", "has no image ami-0123456789abcdef0"),
    "parameter": ("/vision/other", "Systems Manager has no such parameter"),
    "profile": ("{image}\n  iam_instance_profile: training", "has no instance profile training"),
    "reserved": (
        "{image}\nreservation: cr-0123456789abcdef0\navailability_zones: [us-east-1a]",
        "has no capacity reservation cr-0123456789abcdef0",
    ),
    "unoffered": (
        "{image}\navailability_zones: [us-east-1e]",
        "AWS does not offer the instance type g5.xlarge in us-east-1e; it is in us-east-1a",
    ),
    "zone": (
        "{image}\navailability_zones: [us-east-1z]",
        "has no availability zone us-east-1z",
    ),
}
"""For each fleet: what stands in place of its image, or account, and what the preview says of it."""

DISK = """
type: volume
name: {name}
backend: aws
region: us-east-1
availability_zone: us-east-1a
aws: {{account: "123456789012"{more}}}
{origin}
"""


def test_a_failed_preview_is_said_at_its_resource(site, cloud):
    """Each fleet and volume has its own reason, the others have their previews, and nothing is saved or created."""
    for name, (value, _) in WRONG.items():
        image = site.image if name == "account" else value.format(image=site.image)
        text = FLEET.format(nodes=1, image=image).replace("gpus", name)
        if name == "account":
            text = text.replace("123456789012", value)
        (site.root / f"{name}.yaml").write_text(text)
    site.declare(1)
    for name, more, origin in (
        ("copied", ", snapshot_id: snap-0123456789abcdef0", "size: 10GB"),
        ("known", "", "volume_id: vol-0123456789abcdef0"),
        ("new", "", "size: 10GB"),
    ):
        text = DISK.format(name=name, more=more, origin=origin)
        (site.root / f"volume-{name}.yaml").write_text(text)

    out = site.root / "today.plan"
    shown = site.run("plan", "--preview", "--out", str(out), code=1)
    assert not out.exists()
    assert "was not written" in shown
    document = json.loads(shown_json(site))
    changes = {one["address"]: one for one in document["resource_changes"]}
    for name, (_, said) in WRONG.items():
        assert said in changes[f"fleet/{name}"]["preview_error"]["message"]
        assert said in shown
    assert changes["fleet/account"]["preview_error"]["advice"]
    assert "snap-0123456789abcdef0" in changes["volume/copied"]["preview_error"]["message"]
    assert "vol-0123456789abcdef0" in changes["volume/known"]["preview_error"]["message"]
    assert [one["name"] for one in changes["volume/new"]["preview"]] == ["new"]
    assert changes["fleet/gpus"]["preview"][-1]["name"] == "gpus-0"
    assert "nothing was applied" in site.run("apply", "-y", code=1)
    assert cloud.instances() == []
    for path in site.root.glob("*.yaml"):
        if path.name != "environment.yaml":
            path.unlink()


def shown_json(site):
    """Return what `plan --preview` writes to its standard output; the error is on the other one."""
    shown = site.run("plan", "--preview", "--format", "json", code=1)
    return shown[: shown.rindex("\n}\n") + 3]


def test_hosts_and_disks_that_change_or_go(site, cloud):
    """The preview of fewer hosts, of hosts in the place of others, and of a disk that grows or goes."""
    volume, fleet = site.root / "volume.yaml", site.root / "fleet.yaml"

    def declare_volume(size):
        origin = f"size: {size}GB\ndeletion_policy: snapshot"
        volume.write_text(DISK.format(name="data", more="", origin=origin))

    site.declare(2)
    declare_volume(10)
    site.run("apply", "-y", "--detach")
    site.run("controller", "stop")
    site.declare(1)
    declare_volume(20)
    shown = site.run("plan", "--preview")
    assert "preview: delete 1 aws:ec2/instance:Instance\n" in shown
    assert "preview: update 1 aws:ebs/volume:Volume (size: 10 → 20)" in shown

    site.declare(2)
    newer = cloud.front.catalog.publish_image("newer")
    fleet.write_text(fleet.read_text().replace(site.image, newer))
    volume.unlink()
    shown = site.run("plan", "--preview")
    replaced = "create 2 aws:ec2/instance:Instance; delete 2 aws:ec2/instance:Instance"
    assert f"preview: {replaced}\n" in shown
    assert "create 1 aws:ebs/snapshot:Snapshot; delete 1 aws:ebs/volume:Volume" in shown

    # If all leave before one is created, what they share does so too.
    fleet.write_text(fleet.read_text() + "update: {max_unavailable: 2}\n")
    shown = site.run("plan", "--preview")
    for action in ("create", "delete"):
        assert f"{action} 2 aws:ec2/instance:Instance, 1 aws:ec2/keyPair:KeyPair" in shown

    site.declare("0..0")
    shown = site.run("plan", "--preview")
    assert "delete 2 aws:ec2/instance:Instance, 1 aws:ec2/keyPair:KeyPair" in shown
    assert len(cloud.instances()) == 2


def test_a_fleet_that_has_no_host_yet(site, cloud):
    """The cloud is asked for what a first host needs, before a run waits for one."""
    site.declare("0..2")
    assert "preview: for a first host, create " in site.run("plan", "--preview")
    path = site.root / "fleet.yaml"
    path.write_text(path.read_text().replace(site.image, "ami-0123456789abcdef0"))
    for command in (("plan", "--preview"), ("apply", "-y")):
        said = site.run(*command, code=1)
        assert "preview failed" in said
        assert "has no image ami-0123456789abcdef0" in said
    assert site.plan()["resource_changes"]
    assert cloud.instances() == []


def test_a_run_that_brings_in_the_first_host(site, cloud):
    """The plan of a fleet that does not change has the type, the cost and the preview of what the run needs."""
    site.declare("0..2")
    site.run("apply", "-y")
    (site.root / "train.yaml").write_text(
        "type: task\nname: train\nfleets: [gpus]\ncommands: [hostname]\n"
    )
    shown = site.run("plan", "--preview")
    print(shown)
    assert "waits for 1 host that fleet gpus will create" in shown
    assert "Cost of fleet gpus by demand: $0.00/h → $1.01/h" in shown
    assert "(g5.xlarge in us-east-1, $1.01/h)" in shown
    assert "Preview of fleet gpus by demand: create 1 aws:ec2/instance:Instance" in shown
    (site.root / "train.yaml").unlink()
    assert cloud.instances() == []
