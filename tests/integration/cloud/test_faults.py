"""Faults of an account and of its ledger: what is said, and that nothing is created or deleted by mistake."""

from __future__ import annotations

import dataclasses
import shutil

import pytest

from cloud import faults
from fleetform.providers.contract.errors import CredentialsRefused, ProviderError, TemporaryError
from fleetform.providers.contract.hosts import BATCH_MAX, CreatedHost
from integration.cloud.test_aws_hosts import create, hosts, release, request_of

__all__ = ["hosts", "request_of"]

pytestmark = pytest.mark.waits


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


def test_a_vpc_that_was_deleted(hosts, cloud, request_of):
    """AWS names the VPC, the error does too, and the next call can succeed in another one."""
    (refused,) = create(hosts(), [request_of(0, vpc="vpc-00000000", subnet="subnet-00000000")])
    assert isinstance(refused, ProviderError)
    assert "vpc-00000000" in str(refused)
    assert cloud.instances() == []
    release(hosts(), [request_of(0, vpc="vpc-00000000", subnet="subnet-00000000")])


@pytest.mark.parametrize("fault", ["wrong", "expired"])
def test_credentials_that_are_not_accepted(hosts, cloud, request_of, monkeypatch, fault):
    """They are refused before anything is created, and the same host is created with good ones."""
    if fault == "wrong":
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWN")
    else:
        cloud.expire()
    (refused,) = create(hosts(), [request_of(0)])
    cloud.expire(expired=False)
    assert isinstance(refused, CredentialsRefused)
    assert cloud.instances() == []


def test_throttled_replies(hosts, cloud, request_of):
    """Calls are repeated, by the engine and by who asks again, until all exist, and none exists twice."""
    requests = [request_of(number) for number in range(3)]
    throttled = [
        cloud.inject(faults.throttled(operation, times))
        for operation, times in (("DescribeInstances", 5), ("RunInstances", 9))
    ]
    found = create(hosts(), requests)
    while any(isinstance(one, ProviderError) for one in found):
        assert all(isinstance(one, (CreatedHost, TemporaryError)) for one in found), found
        found = create(hosts(), requests)
    assert [one.met for one in throttled] == [5, 9]
    uids = [one.tags["fleetform:uid"] for one in cloud.instances()]
    assert sorted(uids) == [one.uid for one in requests]
    release(hosts(), requests)


def test_one_failed_create_among_a_hundred(hosts, cloud, request_of, monkeypatch):
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
    release(hosts(), requests)
    assert cloud.instances() == []


def is_named(name):
    def asked(parameters):
        tags = [tag for one in parameters["TagSpecifications"] for tag in one["Tags"]]
        return {"Key": "Name", "Value": name} in tags

    return asked
