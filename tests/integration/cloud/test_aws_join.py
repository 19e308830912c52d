"""Instances that join their fleet: created, booted, recognised, set up, and given a job and a disk."""

from __future__ import annotations

import json

import pytest

from cloud.front import wait_until
from integration.cloud.aws_site import Site

pytestmark = pytest.mark.waits

HOSTS_BOOT = True

PATIENCE_SECONDS = 300.0

RUN = """
type: task
name: hello
fleets: [gpus]
commands: [echo "hello from $(hostname)"]
"""


LONG = """
type: task
name: long
fleets: [gpus]
commands:
  - trap 'echo saved; while [ ! -e {gate} ]; do sleep 0.2; done; exit 0' USR1
  - if [ "$FLEETFORM_ATTEMPT" = 3 ]; then echo "attempt 3 ends"; exit 0; fi
  - echo "attempt $FLEETFORM_ATTEMPT runs"
  - while true; do sleep 0.2; done
checkpoint: {signal: USR1, lead: 1m}
retry: {on: [interruption], max_attempts: 3}
"""


@pytest.mark.parametrize("host_key", ["user-data", "console"])
def test_a_job_runs_on_an_instance(site, host_key):
    """One apply creates the instance, recognises it, sets up its agent and runs the job; another removes it."""
    site.declare(1, more=f"  host_key: {host_key}\nrun_as: root\n")
    (site.root / "run.yaml").write_text(RUN)
    site.run("apply", "-y")
    assert "hello from" in site.run("logs", "hello")
    shown = site.run("fleet", "show", "gpus")
    (instance,) = site.cloud.instances()
    assert "ready" in shown
    assert all(one in shown for one in (instance.id, instance.type, instance.zone, "on-demand"))
    assert "$1.01/h" in site.run("fleet", "list")
    assert "1: 1 ready; $1.01/h" in site.run("status", code=None)
    events = site.run("blame", "fleet/gpus", "--events")
    assert f"host gpus-0 was created: {instance.id} at " in events
    assert site.run("ssh", "gpus-0", "--", "id -un; exit 3", code=3).splitlines()[-1] == "fleetform"
    assert "uid=0(root)" in site.run("ssh", instance.id, "--", "sudo", "id")
    # Only the key that the host made for itself is accepted, whatever the user's own files say.
    (known,) = (site.root.parent / "state").glob("environments/*/known_hosts/*")
    own = site.cloud.front.hosts.run(instance.id, "cat", "/etc/ssh/ssh_host_ed25519_key.pub")
    assert known.read_text().split()[1:3] == own.split()[:2]
    assert "1 host: 1 ok" in site.run("fleet", "check", "gpus")
    assert site.plan()["resource_changes"] == []
    fleet, run = json.loads(site.run("cost", "--format", "json"))
    assert (fleet["name"], run["name"]) == ("gpus", "hello")
    assert 0 < run["time_ms"] < fleet["time_ms"]


VOLUME = """
type: volume
name: data
backend: aws
region: us-east-1
availability_zone: us-east-1a
size: 1GB
aws:
  account: "123456789012"
deletion_policy: delete
"""

USE = """
type: task
name: {name}
fleets: [gpus]
volumes: ["data:/mnt/data"]
commands: ["{command}"]
"""


def test_data_survives_its_instance(pulumi, cloud, hosts, image, tmp_path):
    """A run writes to a disk, its instance is deleted, and a run on the next instance reads what it wrote."""
    site = Site(tmp_path, cloud, image, runs_as_root=True)
    (site.root / "volume.yaml").write_text(VOLUME)
    declare = USE.format(name="write", command="echo kept > /mnt/data/file; df -h /mnt/data")
    (site.root / "run.yaml").write_text(declare)
    try:
        site.declare(1, more="run_as: root\n")
        shown = site.run("plan", code=0)
        assert "volume data is in zone us-east-1a" in shown
        more = "run_as: root\navailability_zones: [us-east-1a]\n"
        site.declare(1, more=more)
        print(site.run("apply", "-y"))
        first = cloud.instances()[0].id
        (disk,) = own_disks(cloud)
        assert disk["State"] == "available"
        assert hosts.disks.torn == []

        site.declare(0, more=more)
        (site.root / "run.yaml").write_text("")
        site.run("apply", "-y", "--allow-destroy")
        assert cloud.instances() == []

        site.declare(1, more=more)
        (site.root / "run.yaml").write_text(USE.format(name="read", command="cat /mnt/data/file"))
        site.run("apply", "-y")
        assert cloud.instances()[0].id != first
        assert site.run("logs", "read").strip() == "kept"
        assert site.plan()["resource_changes"] == []
    finally:
        site.run("destroy", "-y", "--allow-destroy")
    assert cloud.instances() == []
    assert own_disks(cloud) == []
    assert hosts.disks.torn == []


def own_disks(cloud):
    mine = [{"Name": "tag:Name", "Values": ["data"]}]
    return cloud.client().describe_volumes(Filters=mine)["Volumes"]


def test_instances_that_are_taken_away(site, cloud):
    """
    The notice of a spot instance warns the job and ends it as interrupted; an end without a notice loses it. Both are retried.
    """
    site.declare(1, more="run_as: root\nspot_policy: spot\n")
    gate = "/root/gate"
    (site.root / "run.yaml").write_text(LONG.replace("{gate}", gate))
    site.run("apply", "-y", "--detach")
    await_output(site, 1, "attempt 1 runs")
    (first,) = cloud.instances()
    cloud.announce_spot_end(first.id)
    await_output(site, 1, "saved")
    # While the job still saves its work, no other one is placed there, and people see why.
    wait_until(lambda: "quarantined" in site.run("fleet", "show", "gpus"), PATIENCE_SECONDS)
    assert "the cloud takes the host away" in site.run("status", code=None)
    assert "interrupted" not in site.run("events")
    cloud.front.hosts.run(first.id, "touch", gate)
    wait_until(lambda: "interrupted" in site.run("events"), PATIENCE_SECONDS)
    assert site.run("events").count("quarantine of host/gpus-0") == 1
    cloud.reclaim_spot(first.id)
    # A look skips an instance whose row changes meanwhile.
    wait_until(lambda: f"{first.id} (expected) → gone" in site.run("drift"), PATIENCE_SECONDS)

    site.run("apply", "-y", "--detach")
    await_output(site, 2, "attempt 2 runs")
    (second,) = cloud.instances()
    cloud.client().terminate_instances(InstanceIds=[second.id])
    wait_until(
        lambda: f"gpus-0 is gone: {second.id} was terminated" in site.run("status"),
        PATIENCE_SECONDS,
    )
    site.run("apply", "-y")
    await_output(site, 3, "attempt 3 ends")


def await_output(site, attempt, text):
    def is_there():
        return text in site.run("logs", "long", "--attempt", str(attempt), code=None)

    wait_until(is_there, PATIENCE_SECONDS)
