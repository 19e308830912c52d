"""Shared file systems on AWS from their document to the directory of a job on two hosts at once."""

from __future__ import annotations

import json

import pytest

from cloud import cloud_init
from cloud.aws_cloud import AwsCloud
from cloud.file_server import RECORD, FileServer
from cloud.instance_hosts import InstanceHosts
from integration.cloud.aws_site import Site
from lab import lab

pytestmark = pytest.mark.waits

EFS = "fs-0f1e2d3c4b5a69788"
LUSTRE = "fs-0123456789abcdef0"

VOLUME = """
type: volume
name: shared
backend: aws
region: us-east-1
volume_id: {identity}
aws:
  account: "123456789012"
  file_system: {kind}
"""

RUN = """
type: task
name: {name}
fleets: [gpus]
nodes: {nodes}
volumes: ["shared:/mnt"]
commands: ["{command}"]
"""


@pytest.fixture(scope="module")
def hosts(tmp_path_factory, need):
    reason = cloud_init.reason_missing()
    need("cloud-init", not reason, reason)
    server = FileServer(tmp_path_factory.mktemp("server"))
    with lab(tmp_path_factory.mktemp("lab"), hosts=0) as running:
        started = InstanceHosts(running, server)
        yield started
        started.close()
    server.close()


@pytest.fixture(scope="module")
def cloud(tmp_path_factory, hosts):
    with AwsCloud(tmp_path_factory.mktemp("cloud"), hosts=hosts) as running:
        yield running


@pytest.fixture
def site(pulumi, cloud, image, tmp_path):
    """An environment whose runs may be root's, in an account with a file system of each kind."""
    cloud.front.catalog.file_systems = {
        EFS: {"FileSystemId": EFS, "LifeCycleState": "available", "NumberOfMountTargets": 2},
        LUSTRE: {
            "FileSystemId": LUSTRE,
            "Lifecycle": "AVAILABLE",
            "DNSName": f"{LUSTRE}.fsx.us-east-1.amazonaws.com",
            "LustreConfiguration": {"MountName": "a1b2c3d4"},
        },
    }
    made = Site(tmp_path, cloud, image)
    document = (made.root / "environment.yaml").read_text()
    (made.root / "environment.yaml").write_text(f"{document}grants: {{root: true}}\n")
    yield made
    made.run("destroy", "-y", "--allow-destroy")
    assert cloud.instances() == []


def declare_volume(site, identity=EFS, kind="efs"):
    (site.root / "volume.yaml").write_text(VOLUME.format(identity=identity, kind=kind))


def test_hosts_share_a_file_system(site, cloud, hosts):
    """Two nodes of a run write to it at once, a later run reads both, and what is removed is only unmounted."""
    group = cloud.client().create_security_group(GroupName="files", Description="files")["GroupId"]
    declare_volume(site)
    site.declare(2, more=f"  security_groups: [{group}]\nrun_as: root\n")
    write = "hostname > /mnt/$FLEETFORM_NODE_RANK"
    (site.root / "run.yaml").write_text(RUN.format(name="write", nodes=2, command=write))
    print(site.run("apply", "-y"))
    site.run("plan", "--detailed-exitcode")
    (site.root / "run.yaml").write_text(
        RUN.format(name="read", nodes=1, command="cat /mnt/0 /mnt/1")
    )
    site.run("apply", "-y")
    assert len(set(site.run("logs", "read").split())) == 2

    shown = json.loads(site.run("volume", "show", "shared", "--json"))
    assert (shown["disk"], shown["file_system"]) == (EFS, "efs")
    (line,) = (one for one in site.run("volume", "list").splitlines() if EFS in one)
    assert line.split()[:4] == ["shared", "aws", EFS, "efs"]
    assert all(group in str(one.call.parameters) for one in cloud.calls("RunInstances"))
    for one in cloud.instances():
        (mounted,) = hosts.run(one.id, "cat", RECORD).splitlines()
        source, path, _, options = mounted.split()
        assert source == f"{EFS}.efs.us-east-1.amazonaws.com:/"
        assert "nfsvers=4.1" in options
        assert path in hosts.run(one.id, "cat", "/proc/self/mounts")

    (site.root / "run.yaml").write_text("")
    (site.root / "volume.yaml").write_text("")
    assert f"{EFS} in us-east-1 stays, with its data" in site.run("plan")
    site.run("apply", "-y")
    for one in cloud.instances():
        assert path not in hosts.run(one.id, "cat", "/proc/self/mounts")


def test_a_file_system_is_looked_up_before_it_is_mounted(site, cloud):
    """The source of Lustre has the mount name that FSx says; what no host could mount is refused, and drift names one that is gone."""
    declare_volume(site, LUSTRE, "efs")
    assert f"{LUSTRE} does not exist in us-east-1, as a file system of kind efs" in site.run(
        "apply", "-y", code=1
    )
    declare_volume(site, LUSTRE, "lustre")
    site.run("apply", "-y")
    site.run("drift", "--detailed-exitcode")
    del cloud.front.catalog.file_systems[LUSTRE]
    assert f"there, as {LUSTRE} in us-east-1" in site.run("drift", "--detailed-exitcode", code=2)

    cloud.front.catalog.file_systems[EFS]["NumberOfMountTargets"] = 0
    declare_volume(site, EFS, "efs")
    site.run("apply", "-y", "--allow-destroy", code=1)
    assert "has no mount target" in site.run("apply", "-y", "--allow-destroy", code=1)
