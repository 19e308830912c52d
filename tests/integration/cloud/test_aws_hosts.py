"""The provider of hosts on AWS, through its own runner and the real engine."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
from datetime import timedelta

import pytest

from cloud import faults
from fleetform.providers.contract.errors import CredentialsRefused, NoCapacity, PermanentError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.pulumi.aws.hosts import AwsHosts
from fleetform.providers.pulumi.recovery import existence
from integration.cloud.aws_site import own_groups

pytestmark = pytest.mark.waits

ENVIRONMENT = "e" * 32


@pytest.fixture
def hosts(pulumi, cloud, tmp_path, monkeypatch):
    """Return a function that makes the provider, as a process of its own would have it."""
    for name, value in cloud.environment().items():
        monkeypatch.setenv(name, value)
    yield lambda: AwsHosts(tmp_path / "state", ENVIRONMENT)
    for instance in cloud.instances():
        cloud.client().terminate_instances(InstanceIds=[instance.id])


@pytest.fixture
def request_of(image):
    """Return a function that gives the request for a host by its number."""

    def request(number, **place):
        return InstanceRequest(
            uid=f"{number:032x}",
            name=f"gpus-{number}",
            fleet="gpus",
            declared={},
            provider="aws",
            endpoint={
                "account": "123456789012",
                "region": "us-east-1",
                "instance_type": "g5.xlarge",
                "image": image,
                "root_gb": 100,
                "ssh_from": ["203.0.113.7/32"],
                "stack": "gpus-first",
                **place,
            },
        )

    return request


def silent(_sentence):
    """Take a sentence of progress, and do nothing with it."""


def create(hosts, requests, report=silent):
    async def play():
        return await asyncio.gather(
            *(hosts.create(one, report) for one in requests), return_exceptions=True
        )

    return asyncio.run(play())


def are_those(found, created):
    """Tell whether these are hosts that existed before, with the time at which the cloud created them."""
    return [dataclasses.replace(one, created_at_ms=None) for one in found] == created and all(
        one.created_at_ms for one in found
    )


def release(hosts, requests):
    async def play():
        await asyncio.gather(*(hosts.release(one) for one in requests))

    asyncio.run(play())


def stacks(tmp_path):
    folder = tmp_path / "state" / "environments" / ENVIRONMENT / "pulumi" / "stacks"
    return sorted(one.name for one in folder.iterdir())


def test_hosts_of_one_step_are_one_batch(hosts, cloud, request_of, tmp_path):
    """They are created once, shrink one by one, and leave neither a resource nor a stack behind."""
    three, said = [request_of(number) for number in range(3)], []
    created = create(hosts(), three, said.append)
    assert {one.id for one in created} == {one.id for one in cloud.instances()}
    assert all(one.address for one in created)
    assert len(cloud.calls("RunInstances")) == 3
    assert f"host gpus-0 ({created[0].id}) is created" in said

    # Another process asks again.
    assert are_those(create(hosts(), three), created)
    assert len(cloud.calls("RunInstances")) == 3

    release(hosts(), three[1:2])
    assert {one.id for one in cloud.instances()} == {created[0].id, created[2].id}
    # A host that takes the place of another one has a stack of its own.
    (fourth,) = create(hosts(), [request_of(4, stack="")])
    assert {one.id for one in cloud.instances()} == {created[0].id, created[2].id, fourth.id}
    assert [one.endswith("-shared") for one in stacks(tmp_path)].count(True) == 1

    release(hosts(), [three[0], three[2], request_of(4, stack="")])
    assert cloud.instances() == []
    assert stacks(tmp_path) == []
    names = [
        one["GroupName"] for one in cloud.client().describe_security_groups()["SecurityGroups"]
    ]
    assert names == ["default"]


def test_one_refused_create_keeps_the_others(hosts, cloud, request_of):
    """What was created stays, and the refused host is no longer of its stack: it may be asked for elsewhere."""
    cloud.inject(dataclasses.replace(faults.no_capacity(), when=_is_named("gpus-1")))
    created, refused = create(hosts(), [request_of(0), request_of(1)])
    assert [one.id for one in cloud.instances()] == [created.id]
    assert isinstance(refused, NoCapacity)
    assert refused.reason == "no capacity (InsufficientInstanceCapacity)"
    calls = len(cloud.calls("RunInstances"))
    assert are_those(create(hosts(), [request_of(0)]), [created])
    assert len(cloud.calls("RunInstances")) == calls
    release(hosts(), [request_of(0), request_of(1)])
    assert cloud.instances() == []


def _is_named(name):
    def asked(parameters):
        tags = [tag for one in parameters["TagSpecifications"] for tag in one["Tags"]]
        return {"Key": "Name", "Value": name} in tags

    return asked


def test_a_host_that_is_gone_is_not_bought_again(hosts, cloud, request_of):
    """A uid is bought once: a host that ended outside fleetform is reported, and a new process does not create it."""
    (created,) = create(hosts(), [request_of(0)])
    cloud.client().terminate_instances(InstanceIds=[created.id])
    release(hosts(), [request_of(0)])
    assert cloud.instances() == []


def test_a_lost_state_is_rebuilt(hosts, cloud, request_of, tmp_path):
    """No host is created twice, the batch grows and shrinks as before, and nothing is left behind."""
    both, said = [request_of(0), request_of(1)], []
    created = create(hosts(), both)
    calls = len(cloud.calls("RunInstances"))
    shutil.rmtree(tmp_path / "state/environments" / ENVIRONMENT / "pulumi/state")
    assert are_those(create(hosts(), both, said.append), created)
    assert len(cloud.calls("RunInstances")) == calls
    assert any("is lost: it is rebuilt" in one for one in said)

    create(hosts(), [request_of(2)])
    release(hosts(), [request_of(2)])
    assert {one.id for one in cloud.instances()} == {one.id for one in created}
    shutil.rmtree(tmp_path / "state/environments" / ENVIRONMENT / "pulumi/state")
    release(hosts(), both)
    assert cloud.instances() == []
    assert own_groups(cloud) == []
    assert stacks(tmp_path) == []


def test_a_create_that_was_cut_off_is_finished(hosts, cloud, request_of):
    """The root disks have no tags yet: that keeps the batch neither from growing nor from shrinking, and they get them."""
    requests = [request_of(number) for number in range(3)]
    untagged = cloud.inject(
        dataclasses.replace(faults.refused("CreateTags", "UnauthorizedOperation", "no"), times=None)
    )
    create(hosts(), requests[:2])
    cloud.remove(untagged)
    assert root_disks(cloud) == [{}, {}]
    found = create(hosts(), requests[:2])
    assert {one.id for one in found} == {one.id for one in cloud.instances()}
    release(hosts(), requests[:1])
    assert [one["Name"] for one in root_disks(cloud)] == ["gpus-1"]
    create(hosts(), requests[2:])
    assert [one["Name"] for one in root_disks(cloud)] == ["gpus-1", "gpus-2"]
    release(hosts(), requests[1:])
    assert cloud.instances() == []


def root_disks(cloud):
    """Return the tags of the root disks of all instances."""
    there = {one.id for one in cloud.instances()}
    return [
        {tag["Key"]: tag["Value"] for tag in disk.get("Tags", ())}
        for disk in cloud.client().describe_volumes()["Volumes"]
        if there.intersection(one["InstanceId"] for one in disk["Attachments"])
    ]


def test_environments_with_fleets_of_one_name(hosts, cloud, request_of, tmp_path):
    """They share an account and nothing else, and what one of them releases is its own."""
    first, other = hosts(), AwsHosts(tmp_path / "other", "f" * 32)
    create(first, [request_of(0)])
    (kept,) = create(other, [request_of(1)])
    release(hosts(), [request_of(0)])
    assert [one.id for one in cloud.instances()] == [kept.id]
    assert len(own_groups(cloud)) == 1
    release(AwsHosts(tmp_path / "other", "f" * 32), [request_of(1)])
    assert cloud.instances() == []
    assert own_groups(cloud) == []


def test_the_record_of_a_stack_is_lost(hosts, cloud, request_of, tmp_path):
    """EC2 ends the instance that is released; what it shared with others stays."""
    (created,) = create(hosts(), [request_of(0)])
    shutil.rmtree(tmp_path / "state/environments" / ENVIRONMENT / "pulumi/stacks")
    shutil.rmtree(tmp_path / "state/environments" / ENVIRONMENT / "pulumi/state")
    for _ in range(2):
        release(hosts(), [request_of(0, id=created.id)])
        assert cloud.instances() == []
    (group,) = own_groups(cloud)
    cloud.client().delete_security_group(GroupId=group["GroupId"])
    (key,) = cloud.client().describe_key_pairs()["KeyPairs"]
    cloud.client().delete_key_pair(KeyPairId=key["KeyPairId"])


def test_one_purchase_made_twice(hosts, cloud, request_of, image):
    """Of two instances with one uid the one that the record does not have is terminated, and named."""
    (created,) = create(hosts(), [request_of(0)])
    (first,) = cloud.instances()
    tags = [{"Key": key, "Value": value} for key, value in first.tags.items()]
    cloud.client().run_instances(
        ImageId=image, InstanceType="g5.xlarge", MinCount=1, MaxCount=1,
        TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
    )  # fmt: skip
    (second,) = [one.id for one in cloud.instances() if one.id != created.id]
    said = []
    assert are_those(create(hosts(), [request_of(0)], said.append), [created])
    assert (
        f"{second} is a second instance of host gpus-0 without an agent: it is terminated" in said
    )
    assert [one.id for one in cloud.instances()] == [created.id]
    release(hosts(), [request_of(0)])


def test_a_batch_grows_although_one_of_its_hosts_is_gone(hosts, cloud, request_of, monkeypatch):
    """The state is refreshed, and the uid of what is gone is not created a second time."""
    monkeypatch.setattr(existence, "LISTED", timedelta(0))
    (created,) = create(hosts(), [request_of(0)])
    cloud.client().terminate_instances(InstanceIds=[created.id])
    gone, other = create(hosts(), [request_of(0), request_of(1)])
    assert f"{created.id} no longer exists" in str(gone)
    assert [one.id for one in cloud.instances()] == [other.id]
    release(hosts(), [request_of(0), request_of(1)])
    assert cloud.instances() == []


def test_credentials_of_another_account(hosts, cloud, request_of, monkeypatch):
    """They are refused before anything is created, and the message names the account."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", cloud.access_key("999999999999"))
    (refused,) = create(hosts(), [request_of(0)])
    assert isinstance(refused, CredentialsRefused)
    assert "999999999999" in str(refused)
    assert cloud.instances() == []


def test_without_the_pulumi_cli(hosts, request_of, monkeypatch, cloud):
    """One sentence says what to install."""
    path = os.environ["PATH"].removeprefix(f"{cloud.programs}:")
    monkeypatch.setenv("PATH", path)
    (refused,) = create(hosts(), [request_of(0)])
    assert isinstance(refused, PermanentError)
    assert (str(refused), refused.advice) == (
        "the Pulumi CLI is not installed",
        "run `fleetform doctor --install-pulumi`, or put `pulumi` on PATH",
    )
