"""
An account of AWS in which tests create what costs money: what they may spend, what exists, and the removal of all of it.

Everything that a test creates has the tag of its environment; nothing else of the account is listed or changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from fleetform.providers.offers.catalogue import offers
from fleetform.providers.pulumi.aws.inventory import AwsInventory
from fleetform.providers.pulumi.recovery.inventory import Existing

HOSTS_MAX = 2
"""As many instances exist at a time."""

HOURS_MAX = 1
"""A whole run takes some minutes; what hangs is ended after `COMMAND_SECONDS`."""

COMMAND_SECONDS = 900.0
SWEEP_SECONDS = 600.0

FLEET = """
type: fleet
name: tests
backends: [aws]
regions: [{region}]
instance_types: [{instance_type}]
nodes: {nodes}
run_as: root
aws:
  account: "{id}"
  ssh_from: [{ssh_from}]
"""

# In this order: a group in use cannot be deleted.
_DELETE = {
    "aws:ec2/instance:Instance": ("terminate_instances", "InstanceIds"),
    "aws:ebs/volume:Volume": ("delete_volume", "VolumeId"),
    "aws:ec2/launchTemplate:LaunchTemplate": ("delete_launch_template", "LaunchTemplateId"),
    "aws:ec2/placementGroup:PlacementGroup": ("delete_placement_group", "GroupName"),
    "aws:ec2/securityGroup:SecurityGroup": ("delete_security_group", "GroupId"),
    "aws:ec2/keyPair:KeyPair": ("delete_key_pair", "KeyName"),
}


@dataclass
class Account:
    """One account, and an environment of fleetform of its own in it; `variables` are those of every command."""

    id: str
    region: str
    ssh_from: str
    instance_type: str
    dollars_max: float
    variables: Mapping[str, str]
    folder: Path
    uid: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __post_init__(self) -> None:
        self.root = self.folder / "configuration"
        self.root.mkdir(parents=True)
        (self.root / "environment.yaml").write_text(
            f"type: environment\nname: tests\nuid: {self.uid}\ngrants: {{root: true}}\n"
        )
        self.variables = {
            **self.variables,
            "FLEETFORM_STATE_HOME": str(self.folder / "state"),
            "FLEETFORM_CONFIG_HOME": str(self.folder / "config"),
            "FLEETFORM_CACHE_HOME": str(self.folder / "cache"),
        }
        self._session = boto3.Session(
            aws_access_key_id=self.variables.get("AWS_ACCESS_KEY_ID"),
            aws_secret_access_key=self.variables.get("AWS_SECRET_ACCESS_KEY"),
            aws_session_token=self.variables.get("AWS_SESSION_TOKEN"),
            profile_name=self.variables.get("AWS_PROFILE"),
            region_name=self.region,
        )

    def require_affordable(self) -> None:
        """Refuse, before anything exists, what could cost more than is allowed."""
        prices = {
            one.price_micros
            for one in offers("aws")
            if (one.instance_type, one.region, one.spot) == (self.instance_type, self.region, False)
        }
        assert prices, f"the catalogue has no price of {self.instance_type} in {self.region}"
        dollars = max(price or 0 for price in prices) / 1e6 * HOSTS_MAX * HOURS_MAX
        assert None not in prices, f"the price of {self.instance_type} is unknown"
        assert dollars <= self.dollars_max, f"it could cost ${dollars:.2f}"

    # -- commands ---------------------------------------------------------------------------------

    def declare(self, nodes: int, *more: str) -> None:
        assert nodes <= HOSTS_MAX
        fleet = FLEET.format(
            nodes=nodes,
            id=self.id,
            region=self.region,
            instance_type=self.instance_type,
            ssh_from=self.ssh_from,
        )
        (self.root / "all.yaml").write_text("---\n".join((fleet, *more)))

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "fleetform.cli.entry", *words],
            cwd=self.root,
            env=self.variables,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def run(self, *words: str) -> str:
        with self.start(*words) as process:
            try:
                output, _ = process.communicate(timeout=COMMAND_SECONDS)
            finally:
                process.kill()
        assert process.returncode == 0, output
        return output

    # -- what exists ------------------------------------------------------------------------------

    def existing(self) -> Sequence[Existing]:
        """List everything with the tag of the environment that is not being deleted."""
        return asyncio.run(AwsInventory(self._client(), self.uid).existing())

    def instances(self) -> list[Existing]:
        return [one for one in self.existing() if one.type == "aws:ec2/instance:Instance"]

    def sweep(self) -> None:
        """Delete all of it, whatever fleetform knows of it; fails if something is left."""
        deadline = time.monotonic() + SWEEP_SECONDS
        while left := self.existing():
            assert time.monotonic() < deadline, f"still there: {left}"
            for kind, (operation, parameter) in _DELETE.items():
                for one in left:
                    if one.type == kind:
                        value = [one.id] if parameter.endswith("Ids") else one.id
                        # What is still in use is deleted in the next round.
                        with contextlib.suppress(ClientError):
                            getattr(self._client(), operation)(**{parameter: value})
            time.sleep(1)

    def _client(self) -> Any:
        return self._session.client("ec2", endpoint_url=self.variables.get("AWS_ENDPOINT_URL"))


@contextlib.contextmanager
def swept(account: Account) -> Iterator[Account]:
    """Destroy the environment at the end, and delete what that has left."""
    account.require_affordable()
    try:
        yield account
    finally:
        try:
            account.run("destroy", "-y", "--allow-destroy")
            left = account.existing()
        finally:
            account.sweep()
    assert not left, f"destroy has left {left}"


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + COMMAND_SECONDS
    while not is_true():
        assert time.monotonic() < deadline, what
        time.sleep(0.5)
