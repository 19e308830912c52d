"""Instances that the ledger does not know: a rebuild adopts all of them with their jobs, a command adopts one."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cloud.front import wait_until
from fleetform.providers.first_boot.cloud_config import cloud_config
from fleetform.providers.first_boot.host_key import first_key

pytestmark = pytest.mark.waits

HOSTS_BOOT = True

PATIENCE_SECONDS = 120.0

RULES = "run_as: root\nsharing: whole\n"

LONG = """
type: task
name: {name}
fleets: [gpus]
commands: ["while [ ! -e /tmp/end ]; do sleep 0.2; done; echo ended"]
"""


def runs(site):
    return {one["name"]: one for one in json.loads(site.run("ps", "--all", "--format", "json"))}


def await_states(site, states):
    def are_there():
        return {name: one["state"] for name, one in runs(site).items()} == states

    wait_until(are_there, PATIENCE_SECONDS)


def hosts_of(site):
    shown = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))
    return {one["name"]: one["state"] for one in shown["instances"]}


def folder_of(site):
    (folder,) = Path(site.variables["FLEETFORM_STATE_HOME"]).glob("environments/*")
    return folder


def end_jobs(site, cloud, hosts):
    for one in cloud.instances():
        hosts.run(one.id, "touch", "/tmp/end")


@pytest.mark.parametrize("is_lost", [False, True])
def test_a_ledger_of_last_night(site, cloud, hosts, tmp_path, is_lost):
    """
    A backup from before the second host, or no ledger at all: a rebuild adopts what is there, and nothing is bought or deleted.

    Both runs go on in their first attempt, and the fleet deletes its hosts as before.
    """
    site.declare(1, more=RULES)
    (site.root / "first.yaml").write_text(LONG.format(name="first"))
    site.run("apply", "-y", "--detach")
    await_states(site, {"first": "running"})
    backup = str(tmp_path / "last-night")
    site.run("state", "backup", backup)
    site.declare(2, more=RULES)
    (site.root / "second.yaml").write_text(LONG.format(name="second"))
    site.run("apply", "-y", "--detach")
    await_states(site, {"first": "running", "second": "running"})
    site.run("controller", "stop")
    before = sorted(one.id for one in cloud.instances())
    calls = len(cloud.calls("RunInstances")), len(cloud.calls("TerminateInstances"))

    if is_lost:
        for path in folder_of(site).glob("ledger*"):
            path.unlink()
    else:
        site.run("state", "restore", "-y", backup)
    print(site.run("apply", "-y", code=None))
    print(site.run("state", "rebuild", "--dry-run"))
    print(site.run("state", "rebuild"))
    await_states(site, {"first": "running", "second": "running"})
    print(site.run("apply", "-y", "--detach"))
    assert site.plan()["resource_changes"] == []
    assert "Nothing has drifted" in site.run("drift")
    end_jobs(site, cloud, hosts)
    await_states(site, {"first": "done", "second": "done"})
    assert {one["attempt"] for one in runs(site).values()} == {1}
    assert sorted(one.id for one in cloud.instances()) == before
    assert (len(cloud.calls("RunInstances")), len(cloud.calls("TerminateInstances"))) == calls


def test_one_instance_is_adopted(site, cloud, image):
    """
    An instance that another program created with the tags of the environment becomes a host in a free place.

    It gets an agent and jobs, and is released through a stack of its own.
    """
    site.declare(1, more=RULES)
    site.run("apply", "-y")
    (known,) = cloud.instances()
    (passphrase,) = Path(site.variables["FLEETFORM_CONFIG_HOME"]).glob("pulumi/*.passphrase")
    uid = "f" * 32
    document = cloud_config(
        subprocess.check_output(
            ["ssh-keygen", "-y", "-f", folder_of(site) / "pulumi" / "id_ed25519"], text=True
        ).strip(),
        first_key(passphrase.read_bytes(), uid),
        orphan_seconds=86_400,
    )
    tags = {**known.tags, "fleetform:uid": uid, "Name": "gpus-7"}
    (found,) = cloud.client().run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1, UserData=document,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    )["Instances"]  # fmt: skip
    unknown = found["InstanceId"]
    calls = len(cloud.calls("RunInstances"))

    said = site.run("fleet", "adopt", unknown, code=1)
    assert "fleet gpus has 1 host of 1" in said
    assert "is not an unknown instance" in site.run("fleet", "adopt", known.id, code=1)
    site.declare(2, more=RULES)

    def is_adopted():
        # Its host may still boot.
        said = site.run("fleet", "adopt", unknown, code=None)
        print(said)
        return "gpus-1" in said

    wait_until(is_adopted, PATIENCE_SECONDS)
    site.run("apply", "-y")
    assert len(cloud.calls("RunInstances")) == calls
    wait_until(lambda: hosts_of(site) == {"gpus-0": "ready", "gpus-1": "ready"}, PATIENCE_SECONDS)
    assert site.plan()["resource_changes"] == []
    assert "Nothing has drifted" in site.run("drift")
    site.declare(1, more=RULES)
    site.run("apply", "-y")
    wait_until(lambda: [one.id for one in cloud.instances()] == [known.id], PATIENCE_SECONDS)
