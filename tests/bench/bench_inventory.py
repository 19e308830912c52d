"""The inventory of one environment in an account: 2 000 instances with its tag, in pages, from the cloud of the tests."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from measuring import parser_of, positive, scratch, seconds, table

from cloud.aws_cloud import REGION, AwsCloud
from cloud.catalog import ACCOUNT
from fleetform.providers.pulumi.aws.inventory import AwsInventory, ec2_client
from fleetform.providers.pulumi.aws.program import ENVIRONMENT_TAG, AwsAccount
from fleetform.providers.pulumi.recovery.inventory import IDENTITY_TAG

ENVIRONMENT = "e" * 32

TOGETHER = 50
"""One call creates so many; a reservation has them all."""


def create(cloud: AwsCloud, count: int) -> None:
    """Create instances by hand, in turn with as many of another environment."""
    client = cloud.client()
    image = client.describe_images()["Images"][0]["ImageId"]
    for number in range(2 * count // TOGETHER):
        uid = ENVIRONMENT if number % 2 else "0" * 32
        tags = [
            {"Key": ENVIRONMENT_TAG, "Value": uid},
            {"Key": IDENTITY_TAG, "Value": f"{number:032x}"},
        ]
        client.run_instances(
            ImageId=image,
            InstanceType="t3.micro",
            MinCount=TOGETHER,
            MaxCount=TOGETHER,
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
        )


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--instances", type=positive, default=2000, help="[default: 2000]")
    count = parser.parse_args(arguments).instances // TOGETHER * TOGETHER
    times = []
    with scratch() as folder, AwsCloud(folder) as cloud:
        os.environ.update(cloud.environment())
        create(cloud, count)
        for _ in range(3):
            started = time.perf_counter()
            account = AwsAccount(REGION, ACCOUNT, ENVIRONMENT, endpoint=cloud.url)
            found = asyncio.run(AwsInventory(ec2_client(account), ENVIRONMENT).existing())
            times.append(time.perf_counter() - started)
            if len(found) != count:
                raise SystemExit(f"{len(found)} of {count} instances")
    table(
        f"The inventory of {count} instances among {2 * count}, 3 times",
        ["list all", "asked"],
        [[seconds(times), "5 s at most"]],
    )


if __name__ == "__main__":
    main()
