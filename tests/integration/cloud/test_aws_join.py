"""Instances that join their fleet: created, booted, recognised, set up, and given a job."""

from __future__ import annotations

import json

import pytest

from cloud import cloud_init
from cloud.aws_cloud import AwsCloud
from cloud.instance_hosts import InstanceHosts
from integration.cloud.test_aws_fleet import Site
from lab import lab

pytestmark = pytest.mark.waits

RUN = """
type: task
name: hello
fleets: [gpus]
commands: [echo "hello from $(hostname)"]
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory, need):
    reason = cloud_init.reason_missing()
    need("cloud-init", not reason, reason)
    with lab(tmp_path_factory.mktemp("lab"), hosts=0) as running:
        started = InstanceHosts(running)
        yield started
        started.close()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory, hosts):
    with AwsCloud(tmp_path_factory.mktemp("cloud"), hosts=hosts) as running:
        yield running


def test_a_job_runs_on_an_instance(pulumi, cloud, image, tmp_path):
    """One apply creates the instance, replaces its first key, sets up its agent and runs the job; another removes it."""
    site = Site(tmp_path, cloud, image)
    document = (site.root / "environment.yaml").read_text()
    (site.root / "environment.yaml").write_text(f"{document}grants: {{root: true}}\n")
    site.declare(1, more="run_as: root\n")
    (site.root / "run.yaml").write_text(RUN)
    try:
        site.run("apply", "-y")
        assert "hello from" in site.run("logs", "hello")
        shown = site.run("fleet", "show", "gpus")
        assert "ready" in shown
        assert "1 host: 1 ok" in site.run("fleet", "check", "gpus")
        assert site.plan()["resource_changes"] == []
        fleet, run = json.loads(site.run("cost", "--format", "json"))
        assert (fleet["name"], run["name"]) == ("gpus", "hello")
        assert 0 < run["time_ms"] < fleet["time_ms"]
    finally:
        site.run("destroy", "-y", "--allow-destroy")
    assert cloud.instances() == []
