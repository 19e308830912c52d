"""
Count the hosts of an environment by the inventory that fleetform reads before it changes a stack.

    python list_hosts.py ACCOUNT REGION ENVIRONMENT_UID
"""

from __future__ import annotations

import asyncio
import sys

from fleetform.providers.pulumi.aws.inventory import AwsInventory, ec2_client
from fleetform.providers.pulumi.aws.program import AwsAccount


async def main(account: str, region: str, environment_uid: str) -> None:
    client = ec2_client(AwsAccount(region, account, environment_uid))
    existing = await AwsInventory(client, environment_uid).existing()
    print(sum(one.type == "aws:ec2/instance:Instance" for one in existing))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
