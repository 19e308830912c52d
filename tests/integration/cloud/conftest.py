"""Fixtures of tests that start the real Pulumi CLI against the cloud of the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud import cloud_init, pulumi_program
from cloud.aws_cloud import AwsCloud
from cloud.catalog import ACCOUNT
from cloud.instance_hosts import InstanceHosts
from integration.cloud.aws_site import Site, own_groups
from lab import lab

PARAMETER = "/aws/service/canonical/ubuntu/server/22.04/stable/current/amd64/hvm/ebs-gp2/ami-id"


@pytest.fixture(scope="session")
def pulumi(need: Callable[[str, bool, str], None]) -> Path:
    """The path of the Pulumi CLI that `tests/services.sh` builds."""
    reason = pulumi_program.reason_missing()
    need("pulumi", not reason, reason)
    return pulumi_program.pulumi_program()


@pytest.fixture(scope="module")
def hosts(
    tmp_path_factory: pytest.TempPathFactory, need: Callable[[str, bool, str], None]
) -> Iterator[InstanceHosts]:
    """The hosts behind instances, each in a network namespace."""
    reason = cloud_init.reason_missing()
    need("cloud-init", not reason, reason)
    with lab(tmp_path_factory.mktemp("lab"), hosts=0) as running:
        started = InstanceHosts(running)
        yield started
        started.close()


def _hosts_boot(request: pytest.FixtureRequest) -> bool:
    """Tell whether hosts boot behind the instances of a module, which says so with `HOSTS_BOOT = True`."""
    return getattr(request.module, "HOSTS_BOOT", False)


@pytest.fixture(scope="module")
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[AwsCloud]:
    """A cloud for the tests of one module; each of them has its own stack and names."""
    hosts = request.getfixturevalue("hosts") if _hosts_boot(request) else None
    with AwsCloud(tmp_path_factory.mktemp("cloud"), hosts=hosts) as started:
        yield started


@pytest.fixture(autouse=True)
def without_faults(request: pytest.FixtureRequest) -> Iterator[None]:
    """Take away the faults that a test injected."""
    # Before, so that it is still there afterwards.
    started = request.getfixturevalue("cloud") if "cloud" in request.fixturenames else None
    yield
    if started is not None:
        for fault in list(started.front.faults):
            started.remove(fault)
        started.lag(0)


@pytest.fixture
def image(cloud: AwsCloud) -> str:
    return cloud.front.catalog.parameters[PARAMETER]


@pytest.fixture(scope="session")
def public_key(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("key") / "id"
    subprocess.check_call(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "tests", "-f", path]
    )
    return path.with_suffix(".pub").read_text().strip()


class Stacks:
    """Stacks of inline programs, through the Automation API and the real CLI, in one process."""

    def __init__(self, cloud: AwsCloud) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(_OPERATIONS)],
            env=cloud.environment(),
            start_new_session=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._cloud = cloud

    def ask(
        self,
        stack: str,
        program: str,
        *operations: str,
        account: str = ACCOUNT,
        **arguments: Any,
    ) -> None:
        """Let the process begin with operations, one after the other."""
        environment = self._cloud.environment(account)
        asked = {
            "stack": stack,
            "program": program,
            "operations": operations,
            "arguments": arguments,
            "variables": {name: environment[name] for name in _CREDENTIALS},
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def run(self, stack: str, program: str, *operations: str, **given: Any) -> list[dict[str, Any]]:
        """Run operations; return their results up to the first that fails, and that of `state`."""
        self.ask(stack, program, *operations, **given)
        assert self.process.stdout is not None
        results: list[dict[str, Any]] = json.loads(self.process.stdout.readline())
        return results

    def end(self) -> None:
        """End the process once it has done what it was asked."""
        self.process.communicate()


_OPERATIONS = Path(__file__).with_name("stack_operations.py")
_CREDENTIALS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@pytest.fixture(scope="module")
def stacks(pulumi: Path, cloud: AwsCloud) -> Iterator[Stacks]:
    started = Stacks(cloud)
    yield started
    started.end()


@pytest.fixture
def site(request, pulumi, cloud, image, tmp_path):
    """An environment that is left without an instance and without a process; where hosts boot, its runs may be root's."""
    made = Site(tmp_path, cloud, image, runs_as_root=_hosts_boot(request))
    yield made
    if _hosts_boot(request):
        made.run("controller", "stop")
    with made.start("destroy", "-y", "--allow-destroy") as process:
        output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output
    assert cloud.instances() == []
    assert own_groups(cloud) == []
