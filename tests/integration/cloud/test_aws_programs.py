"""The programs that fleetform makes for AWS, through its own runner and the real engine, on the EC2 of the tests."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal

import pytest

from cloud import faults
from cloud.aws_cloud import REGION, AwsCloud
from cloud.catalog import ACCOUNT
from fleetform.agents.host import processes
from fleetform.providers.contract.errors import CredentialsRefused, ProviderError
from fleetform.providers.pulumi.aws.inventory import AwsInventory
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    Batch,
    DiskRequest,
    HostTemplate,
    NewHost,
    SharedParts,
    SharedRequest,
    batch_program,
    shared_program,
    volume_program,
)
from fleetform.providers.pulumi.engine.deployment import resources_of
from fleetform.providers.pulumi.engine.stack import open_stack
from fleetform.providers.pulumi.engine.stack_settings import (
    StackSettings,
    passphrase_file,
)
from fleetform.providers.pulumi.recovery.recover import recover

pytestmark = pytest.mark.waits

UID = "f" * 32
HOSTS = tuple(NewHost(f"u{number}", f"gpus-{number}", "o1", "#cloud-config") for number in range(3))
ZONE = f"{REGION}a"


@pytest.fixture
def cloud(pulumi, tmp_path):
    """A cloud of one test: the names of shared parts are those of the fleet."""
    with AwsCloud(tmp_path / "cloud") as running:
        yield running


class Site:
    """The stacks of one environment over a cloud."""

    def __init__(self, cloud, folder, image, public_key) -> None:
        self.cloud = cloud
        self.state = folder / "environment"
        self.passphrase = passphrase_file(folder / "config", "e1")
        self.account = AwsAccount(REGION, ACCOUNT, "e1", endpoint=cloud.url)
        self.template = HostTemplate("g5.xlarge", image, 100)
        self.shared = SharedRequest(UID, "gpus", "o1", ("203.0.113.7/32",), public_key)

    def open(self, name, account=ACCOUNT):
        settings = StackSettings(
            name, self.state / "stacks" / name, f"file://{self.state}/state", self.passphrase
        )
        return open_stack(settings, environment=self.cloud.environment(account))

    def inventory(self):
        return AwsInventory(self.cloud.client(), "e1")

    async def share(self):
        async with self.open("shared") as stack:
            await apply(stack, shared_program(self.account, self.shared))
            ids = {one.name: one.id for one in resources_of(await stack.export_state())}
        return SharedParts(ids["security-group"], ids["key"], ids.get("placement-group", ""))

    def batch(self, shared, hosts=HOSTS):
        return batch_program(self.account, Batch("b1", "gpus", self.template, hosts), shared)


@pytest.fixture
def site(cloud, tmp_path, image, public_key):
    return Site(cloud, tmp_path, image, public_key)


async def apply(stack, program):
    await stack.preview(program)
    (await stack.up(program)).require()
    # What was just applied has nothing left to change.
    assert await stack.preview(program) == ()


def uids(cloud):
    return sorted(one.tags["fleetform:uid"] for one in cloud.instances())


def test_a_batch_is_created_shrinks_and_is_found(cloud, site):
    """A second preview is empty, and the inventory lists what exists, by type and uid."""

    async def play():
        shared = await site.share()
        async with site.open("batch") as stack:
            program = site.batch(shared)
            await apply(stack, program)
            assert uids(cloud) == ["u0", "u1", "u2"]
            (first, *_) = resources_of(await stack.export_state())
            assert first.outputs["privateIp"]
            existing = await site.inventory().existing()
            listed = {(one.type.rpartition(":")[2], one.tags["fleetform:uid"]) for one in existing}
            assert {name for kind, name in listed if kind == "Instance"} == {"u0", "u1", "u2"}
            assert {kind for kind, name in listed if name == UID} == {"SecurityGroup", "KeyPair"}

            smaller = site.batch(shared, HOSTS[1:])
            planned = await stack.preview(smaller)
            assert [(one.action.value, one.name) for one in planned] == [("delete", "u0")]
            (await stack.up(smaller)).require()
            assert uids(cloud) == ["u1", "u2"]

            ended = cloud.instances()[0]
            cloud.client().terminate_instances(InstanceIds=[ended.id])
            gone = await stack.refresh(smaller)
            assert [(one.action.value, one.id) for one in gone] == [("delete", ended.id)], gone
            await stack.destroy()
        assert uids(cloud) == []

    asyncio.run(play())


def test_hosts_that_a_killed_change_created_are_adopted(cloud, site):
    """`kill -9` of the engine while it waits for hosts: recovery adopts each one by its uid."""

    async def play():
        shared = await site.share()
        program = site.batch(shared)
        async with site.open("batch") as stack:
            await stack.preview(program)

            def kill_engine(change):
                if change.name in {"u0", "u1", "u2"}:
                    children = processes.children(stack.pid)
                    processes.send([one for one in children if one != os.getpid()], signal.SIGKILL)

            with pytest.raises(ProviderError):
                (await stack.up(program, on_change=kill_engine)).require()
        async with site.open("batch") as stack:
            await recover(stack, program, site.inventory(), settle_seconds=1, look_seconds=0.2)
            await apply(stack, program)

    asyncio.run(play())
    assert uids(cloud) == ["u0", "u1", "u2"]


def test_hosts_with_many_network_cards(cloud, site):
    """Each card is an interface of EFA, which only a launch template can say, and the address is an Elastic IP."""
    site.shared = dataclasses.replace(site.shared, is_cluster=True)
    site.template = dataclasses.replace(
        site.template, instance_type="p5.48xlarge", zone=ZONE, network_cards=32, efa=True
    )

    async def play():
        shared = await site.share()
        async with site.open("batch") as stack:
            await apply(stack, site.batch(shared, HOSTS[:1]))
            (reservation,) = cloud.client().describe_instances()["Reservations"]
            (found,) = reservation["Instances"]
            shown = [
                (row["InterfaceType"], row["Attachment"]["NetworkCardIndex"])
                for row in found["NetworkInterfaces"]
            ]
            assert shown == [("efa", card) for card in range(32)]
            (address,) = cloud.client().describe_addresses()["Addresses"]
            assert address["PublicIp"] == found["PublicIpAddress"]
            assert found["Placement"]["GroupName"] == shared.placement_group
            await stack.destroy()

    asyncio.run(play())
    assert cloud.instances() == []
    assert cloud.client().describe_launch_templates()["LaunchTemplates"] == []
    assert cloud.client().describe_addresses()["Addresses"] == []


def test_no_capacity_is_a_failure_of_one_host(cloud, site):
    """A refusal arrives after the attempts of the program, and names the code of AWS."""
    fault = cloud.inject(faults.no_capacity())
    site.template = dataclasses.replace(site.template, zone=ZONE, spot=True, price_max="1.5")

    async def play():
        program = site.batch(await site.share(), HOSTS[:1])
        async with site.open("batch") as stack:
            await stack.preview(program)
            outcome = await stack.up(program, continue_on_error=True)
            await stack.destroy()
            return outcome

    outcome = asyncio.run(play())
    (failure,) = outcome.failures
    assert "InsufficientInstanceCapacity" in str(failure)
    assert fault.met == 3
    assert cloud.instances() == []


def test_a_volume_outlives_its_program(cloud, site):
    """It is protected, so a destroy is refused."""

    async def play():
        async with site.open("volume") as stack:
            await apply(stack, volume_program(site.account, DiskRequest("v1", "data", ZONE, 10)))
            with pytest.raises(ProviderError, match="protected"):
                (await stack.destroy()).require()

    asyncio.run(play())
    assert len(cloud.client().describe_volumes()["Volumes"]) == 1


def test_credentials_of_another_account_are_refused(site):
    """The account is pinned, so nothing is created in the wrong one."""

    async def play():
        async with site.open("shared", account="210987654321") as stack:
            await stack.preview(shared_program(site.account, site.shared))

    with pytest.raises(CredentialsRefused, match="210987654321"):
        asyncio.run(play())
