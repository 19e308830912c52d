"""The programs that fleetform makes for AWS, through its own runner and the real engine."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from cloud import faults
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
from fleetform.providers.pulumi.engine.stack import open_stack
from fleetform.providers.pulumi.engine.stack_settings import (
    StackSettings,
    backend_url,
    passphrase_file,
    stack_folder,
)

pytestmark = pytest.mark.waits

ACCOUNT = AwsAccount("us-east-1", "123456789012", "e1")
SHARED = SharedRequest("f" * 32, "gpus", "o1", ("203.0.113.7/32",), "", is_cluster=True)


@pytest.fixture
def opened(pulumi, cloud, tmp_path):
    """Return a function that opens a stack by its name."""
    state = tmp_path / "environment"
    passphrase = passphrase_file(tmp_path / "config", "e1")

    def open_one(name):
        settings = StackSettings(
            name=name, folder=stack_folder(state, name), backend=backend_url("", state), passphrase=passphrase
        )  # fmt: skip
        return open_stack(settings, environment=cloud.environment())

    return open_one


async def apply(stack, program):
    await stack.preview(program)
    outcome = await stack.up(program)
    outcome.require()
    # What was just applied has nothing left to change.
    assert await stack.preview(program) == ()
    return outcome


async def shared_parts(stack, public_key):
    request = dataclasses.replace(SHARED, public_key=public_key)
    outcome = await apply(stack, shared_program(ACCOUNT, request))
    ids = {one.name: one.id for one in outcome.changes}
    return SharedParts(ids["security-group"], ids["key"], ids["placement-group"])


def hosts(*names):
    return tuple(NewHost(f"uid-{name}", name, "o1", "#cloud-config\n") for name in names)


def test_hosts_with_many_network_cards(cloud, opened, image, public_key):
    """Each card is an interface of EFA, which only a launch template can say, and there is no public address."""
    template = HostTemplate(
        "p5.48xlarge", image, 100, zone="us-east-1a", network_cards=32, efa=True
    )

    async def play():
        async with opened("shared") as shared, opened("cards") as cards:
            parts = await shared_parts(shared, public_key)
            batch = Batch("b2", "gpus", template, hosts("gpus-2"))
            await apply(cards, batch_program(ACCOUNT, batch, parts))
            found = described(cloud, "uid-gpus-2")
            shown = [
                (row["InterfaceType"], row["Attachment"]["NetworkCardIndex"])
                for row in found["NetworkInterfaces"]
            ]
            assert shown == [("efa", card) for card in range(32)]
            assert "PublicIpAddress" not in found
            await cards.destroy()
            await shared.destroy()

    asyncio.run(play())
    assert cloud.instances() == []
    assert cloud.client().describe_launch_templates()["LaunchTemplates"] == []


def described(cloud, uid):
    """Return the description of the instance with this uid."""
    rule = {"Name": "tag-key", "Values": ["fleetform:*"]}
    rows = cloud.client().describe_instances(Filters=[rule])["Reservations"]
    found = [one for row in rows for one in row["Instances"] if one["State"]["Name"] == "running"]
    return next(one for one in found if uid in {tag["Value"] for tag in one["Tags"]})


def test_a_volume_that_exists_is_adopted(cloud, opened):
    """A volume that a person made is taken over under its id, and nothing else is created."""
    ec2 = cloud.client()
    identity = ec2.create_volume(
        AvailabilityZone="us-east-1a", Size=20, VolumeType="gp3", Encrypted=True
    )["VolumeId"]
    before = len(ec2.describe_volumes()["Volumes"])

    async def play():
        disk = DiskRequest("v2", "data", "o1", "us-east-1a", 20, id=identity)
        async with opened("adopted") as stack:
            await apply(stack, volume_program(ACCOUNT, disk))

    asyncio.run(play())
    assert len(ec2.describe_volumes()["Volumes"]) == before
    (found,) = ec2.describe_volumes(VolumeIds=[identity])["Volumes"]
    assert {"Key": "fleetform:environment", "Value": "e1"} in found["Tags"]


def test_no_capacity_is_a_failure_of_one_host(cloud, opened, image, public_key):
    """A refusal arrives after the attempts of the program, and names the code of AWS."""
    fault = cloud.inject(faults.no_capacity())
    template = HostTemplate("g5.xlarge", image, 100, zone="us-east-1a", spot=True, price_max="1.5")

    async def play():
        async with opened("shared") as shared, opened("batch") as batch:
            parts = await shared_parts(shared, public_key)
            program = batch_program(ACCOUNT, Batch("b3", "gpus", template, hosts("gpus-3")), parts)
            await batch.preview(program)
            outcome = await batch.up(program, continue_on_error=True)
            await batch.destroy()
            await shared.destroy()
            return outcome

    outcome = asyncio.run(play())
    (failure,) = outcome.failures
    assert "InsufficientInstanceCapacity" in str(failure)
    assert fault.met == 3
    assert cloud.instances() == []
