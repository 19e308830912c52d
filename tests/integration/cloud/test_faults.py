"""Faults of an account and of its ledger: what is said, and that nothing is created or deleted by mistake."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shutil
import sqlite3

import pytest

from cloud import faults
from fleetform.providers.contract.errors import (
    AnswerUnknown,
    ProviderError,
    StackLocked,
    TemporaryError,
)
from fleetform.providers.contract.hosts import BATCH_MAX, CreatedHost
from integration.cloud.aws_site import killed_during, until
from integration.cloud.test_aws_hosts import ENVIRONMENT, create, hosts, release, request_of
from pulumi_shelf import leave_lock

__all__ = ["hosts", "request_of"]

pytestmark = pytest.mark.waits


@pytest.fixture
def created(cloud):
    """Return a function that lists the uids of all instances that this test has created, also of those that have ended."""
    before = {one.id for one in cloud.instances(ended=True)}

    def uids():
        there = [one for one in cloud.instances(ended=True) if one.id not in before]
        return sorted(one.tags["fleetform:uid"] for one in there)

    return uids


def test_an_older_ledger_creates_and_deletes_nothing(site, cloud):
    """A ledger of last night does not know the instances of today: they are shown, and the fleet gets no others."""
    site.declare(0)
    site.run("apply", "-y")
    ledger = next((site.root.parent / "state").glob("environments/*/ledger.db"))
    site.run("controller", "stop", code=None)
    older = ledger.with_name("ledger.older")
    shutil.copy(ledger, older)
    site.declare(2)
    site.run("apply", "-y")
    site.run("controller", "stop", code=None)
    newest = ledger.with_name("ledger.newest")
    shutil.copy(ledger, newest)
    there = {one.id for one in cloud.instances()}
    calls = len(cloud.calls("RunInstances"))

    put_back(ledger, older)
    said = site.run("apply", "-y", code=None)
    print(said)
    assert {one.id for one in cloud.instances()} == there
    assert len(cloud.calls("RunInstances")) == calls

    put_back(ledger, newest)
    assert site.plan()["resource_changes"] == []


def put_back(ledger, copy):
    for name in (ledger, *ledger.parent.glob("ledger.db-*")):
        name.unlink(missing_ok=True)
    shutil.copy(copy, ledger)


def test_a_region_that_does_not_exist(site, cloud):
    """The plan says that no offer is there, before a cloud is asked."""
    site.declare(1)
    text = (site.root / "fleet.yaml").read_text()
    (site.root / "fleet.yaml").write_text(text.replace("us-east-1", "us-east-9"))
    said = site.run("plan")
    assert "us-east-9" in said
    assert "blocked" in said
    assert cloud.instances() == []


def test_a_vpc_that_was_deleted(site, cloud):
    """Plan and apply name the VPC and what to do; with a network that exists the same fleet is created."""
    ec2 = cloud.client()
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    ec2.delete_vpc(VpcId=vpc)
    site.declare(2, more=f"  vpc: {vpc}\n")
    for command in (("plan", "--preview"), ("apply", "-y")):
        said = site.run(*command, code=1)
        assert f"account 123456789012 in us-east-1 has no VPC {vpc}" in said
        assert "correct `aws.vpc` of the fleet" in said
    assert cloud.instances() == []
    site.declare(2)
    site.run("apply", "-y", "--allow-destroy")
    assert sorted(one.tags["Name"] for one in cloud.instances()) == ["gpus-0", "gpus-1"]
    assert site.plan()["resource_changes"] == []


def test_networks_that_do_not_belong_together(site, cloud):
    """The preview names the field; nothing was created."""
    ec2 = cloud.client()
    vpc = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.9.0.0/24", AvailabilityZone="us-east-1a")
    subnet = subnet["Subnet"]["SubnetId"]
    group = ec2.create_security_group(VpcId=vpc, GroupName="efs", Description="files")["GroupId"]
    missing = "subnet-0f1e2d3c4b5a69788"
    for network, cause in (
        (f"  subnet: {subnet}\n", f"subnet {subnet} is in VPC {vpc}, and the hosts are in"),
        (f"  subnet: {missing}\n", f"has no subnet {missing}"),
        (f"  security_groups: [{group}]\n", f"security group {group} is in VPC {vpc}"),
        ("  security_groups: [sg-0f1e2d3c4b5a69788]\n", "has no security group sg-0f1e2d3c4b5a6"),
    ):
        site.declare(1, more=network)
        assert cause in " ".join(site.run("plan", "--preview", code=1).split())
    assert cloud.instances() == []


@pytest.mark.parametrize(
    ("fault", "cause", "advice"),
    [
        ("wrong", "the cloud refuses the credentials", "set credentials in the environment"),
        ("expired", "the credentials of the cloud have expired", "sign in again"),
        (
            "another account",
            "the credentials are of account 999999999999",
            "of account 123456789012",
        ),
    ],
)
def test_credentials_that_are_not_accepted(site, cloud, fault, cause, advice):
    """The cause and what to do are said, nothing is created or deleted, and good ones finish the change."""
    site.declare(1)
    site.run("apply", "-y")
    site.run("controller", "stop")
    (first,) = cloud.instances()
    good = dict(site.variables)
    if fault == "wrong":
        site.variables["AWS_ACCESS_KEY_ID"] = "AKIAUNKNOWN"
    elif fault == "another account":
        site.variables["AWS_ACCESS_KEY_ID"] = cloud.access_key("999999999999")
    else:
        cloud.expire()
    site.declare(2)
    said = site.run("apply", "-y", code=None)
    drift = site.run("drift", "--detailed-exitcode", code=1)
    there = cloud.instances()
    # The end of the test needs them too.
    site.variables.update(good)
    cloud.expire(expired=False)
    print(said)
    assert cause in said
    assert advice in said
    assert "instances in us-east-1 are not listed" in drift
    assert cause in drift
    assert advice in drift
    assert there == [first]
    site.run("apply", "-y")
    assert sorted(one.tags["Name"] for one in cloud.instances()) == ["gpus-0", "gpus-1"]


def test_two_hundred_throttled_replies(hosts, cloud, created, request_of, monkeypatch):
    """Calls are repeated, by the engine and by who asks again, until all exist, and none exists twice."""
    monkeypatch.setitem(cloud.front.catalog.vcpus, "L-DB2E81BA", 1000)
    requests = [request_of(number) for number in range(20)]
    times = {
        "CreateSecurityGroup": 5,
        "DescribeInstances": 15,
        "ImportKeyPair": 5,
        "RunInstances": 175,
    }
    throttled = [cloud.inject(faults.throttled(call, number)) for call, number in times.items()]
    found = create(hosts(), requests)
    while any(isinstance(one, ProviderError) for one in found):
        assert all(isinstance(one, (CreatedHost, TemporaryError)) for one in found), found
        found = create(hosts(), requests)
    assert sum(one.met for one in throttled) == 200
    assert created() == [one.uid for one in requests]
    release(hosts(), requests)
    assert cloud.instances() == []


def test_lost_replies_and_a_late_list(hosts, cloud, created, request_of):
    """Neither the engine nor the list knows of the hosts: they are waited for, and none is created a second time."""
    # Instances of other uids than in other tests: the cloud lists those that have ended, too.
    requests = [request_of(number) for number in (200, 201)]
    lost = cloud.inject(faults.lost_reply("RunInstances", times=None))
    cloud.lag(15)
    for one in create(hosts(), requests):
        assert isinstance(one, TemporaryError)
    cloud.remove(lost)
    calls, said = len(cloud.calls("RunInstances")), set()
    found = create(hosts(), requests)
    while isinstance(found[0], AnswerUnknown):
        said.update(map(str, found))
        found = create(hosts(), requests)
    assert {one.id for one in found} == {one.id for one in cloud.instances()}
    assert created() == [one.uid for one in requests]
    assert len(cloud.calls("RunInstances")) == calls
    (text,) = said
    assert "the call that creates gpus-200, gpus-201 was cut off: waiting until 20" in text
    cloud.lag(0)
    release(hosts(), requests)
    assert cloud.instances() == []


def test_a_creation_that_was_cut_off_is_shown_everywhere(site, cloud):
    """No command says that the host is not created. The next apply adopts it, and its cost counts from its launch."""
    site.declare(1)
    slow = cloud.inject(faults.slow_create(10))
    killed_during(site, cloud, "RunInstances")
    cloud.remove(slow)
    (there,) = cloud.instances()
    unknown = "its creation was cut off, and whether its instance exists is unknown"
    creation = "hosts[gpus-0].creation: finished (expected) → cut off, and"
    assert f"{creation} {there.id} exists (seen)" in site.run("drift")
    cloud.lag(600)
    assert f"{creation} no instance is listed (seen)" in site.run(
        "drift", "--detailed-exitcode", code=2
    )
    status = site.run("status")
    assert f"! gpus-0 is provisioning: {unknown}" in status
    assert "Needs attention: the creation of host gpus-0 was cut off;" in status
    assert unknown in site.run("why", "fleet/gpus")
    assert shown(site)["state"] == "provisioning"
    assert shown(site)["message"].startswith(f"{unknown}: `fleetform drift` asks")

    with site.start("apply", "-y") as second:
        until(lambda: f"{unknown} until 20" in shown(site)["message"])
        assert f"{unknown} until 20" in site.run("status")
        cloud.lag(0)
        said, _ = second.communicate(timeout=120)
    assert second.returncode == 0, said
    assert [one.id for one in cloud.instances()] == [there.id]
    assert shown(site)["cloud"]["id"] == there.id
    assert "Nothing has drifted" in site.run("drift")
    assert "cut off" not in site.run("status")
    (host,) = cloud.client().describe_instances(InstanceIds=[there.id])["Reservations"][0][
        "Instances"
    ]
    ledger = next((site.root.parent / "state").glob("environments/*/ledger.db"))
    with contextlib.closing(sqlite3.connect(ledger)) as rows:
        ((created_at_ms,),) = rows.execute("SELECT created_at_ms FROM instances")
    assert created_at_ms == host["LaunchTime"].timestamp() * 1000


def shown(site):
    (host,) = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))["instances"]
    return host


def test_an_instance_that_ends_before_it_is_known(site, cloud):
    """Its reply was lost, and then it was terminated: its uid is never asked for again, and its place gets another one."""
    site.declare(1)
    lost = cloud.inject(faults.lost_reply("RunInstances", times=None))
    site.run("apply", "-y", code=None)
    site.run("controller", "stop", code=None)
    cloud.remove(lost)
    (first,) = cloud.instances()
    cloud.client().terminate_instances(InstanceIds=[first.id])
    print(site.run("apply", "-y"))
    (second,) = cloud.instances()
    assert second.tags["Name"] == first.tags["Name"]
    assert second.tags["fleetform:uid"] != first.tags["fleetform:uid"]
    assert site.plan()["resource_changes"] == []


def test_a_lock_that_was_left_behind(hosts, cloud, created, request_of, tmp_path):
    """One of a dead process is removed; one of another machine is named, and nothing is changed."""
    requests = [request_of(number) for number in range(2)]
    (first,) = create(hosts(), requests[:1])
    state = tmp_path / "state/environments" / ENVIRONMENT
    elsewhere = leave_lock(state, "gpus-first", hostname="elsewhere")
    (refused,) = create(hosts(), requests[1:])
    assert isinstance(refused, StackLocked)
    assert "@elsewhere (pid 1) has the stack locked" in str(refused)
    assert [one.id for one in cloud.instances()] == [first.id]
    elsewhere.unlink()
    left = leave_lock(state, "gpus-first")
    create(hosts(), requests[1:])
    assert not left.exists()
    assert created() == [one.uid for one in requests]
    release(hosts(), requests)
    assert cloud.instances() == []


def test_one_failed_create_among_a_hundred(hosts, cloud, created, request_of, monkeypatch):
    """The others are kept, the failed host is named, and the next call creates it alone."""
    requests = [request_of(number) for number in range(BATCH_MAX)]
    fault = dataclasses.replace(
        faults.refused("RunInstances", "InvalidParameterValue", "no"), times=None
    )
    cloud.inject(dataclasses.replace(fault, when=is_named("gpus-42")))
    monkeypatch.setitem(cloud.front.catalog.vcpus, "L-DB2E81BA", 1000)
    found = create(hosts(), requests)
    failed = [number for number, one in enumerate(found) if isinstance(one, Exception)]
    assert failed == [42]
    assert len(cloud.instances()) == BATCH_MAX - 1
    for injected in list(cloud.front.faults):
        cloud.remove(injected)
    (late,) = create(hosts(), [requests[42]])
    assert len(cloud.instances()) == BATCH_MAX
    assert late.id in {one.id for one in cloud.instances()}
    assert created() == [one.uid for one in requests]
    release(hosts(), requests)
    assert cloud.instances() == []


def is_named(name):
    def asked(parameters):
        tags = [tag for one in parameters["TagSpecifications"] for tag in one["Tags"]]
        return {"Key": "Name", "Value": name} in tags

    return asked
