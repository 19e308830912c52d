"""A lab of two hosts, and a home folder whose OpenSSH configuration names them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from contract.host_site import ENVIRONMENT
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.ssh.hosts import SshHosts
from integration.ssh.environment import Environment
from lab import Lab, lab

Story = Callable[[SshHosts], Awaitable[None]]

STORY_SECONDS = 90.0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with lab(tmp_path_factory.mktemp("lab"), hosts=2) as running:
        yield running


@pytest.fixture
def home(hosts: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with the configuration of the lab's hosts."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(mode=0o700, parents=True)
    (folder / ".ssh/config").write_text(hosts.config.read_text())
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return folder


@pytest.fixture
def environment(home: Path, hosts: Lab, tmp_path: Path) -> Iterator[Environment]:
    """An environment on the lab's hosts."""
    environment = Environment(tmp_path / "first", hosts)
    yield environment
    environment.close()


@pytest.fixture
def fault_row(
    environment: Environment,
    request: pytest.FixtureRequest,
    count: Callable[[str, dict[str, int]], None],
) -> Iterator[None]:
    """Count the jobs of a fault, and those that were lost or ran twice: a row at the end of the whole run."""
    yield
    jobs, lost, doubled = environment.fault_counts()
    fault = request.node.originalname.removeprefix("test_").replace("_", " ")
    figures = {"tries": 1, "jobs": jobs, "lost": lost, "doubled": doubled}
    count(f"fault over SSH: {fault}", figures)
    assert (lost, doubled) == (0, 0)


@pytest.fixture
def tell(home: Path, tmp_path: Path) -> Callable[..., None]:
    """Run a story with a provider of its own, and end its connections."""

    async def run(story: Story, connect_seconds: float) -> None:
        provider = SshHosts(tmp_path / "state", ENVIRONMENT, connect_seconds=connect_seconds)
        try:
            async with asyncio.timeout(STORY_SECONDS):
                await story(provider)
        finally:
            await provider.close()

    return lambda story, connect_seconds=20.0: asyncio.run(run(story, connect_seconds))


@pytest.fixture
def bare(home: Path, hosts: Lab) -> Callable[..., dict[str, object]]:
    """Endpoints for an account without a configuration and without known hosts."""
    (home / ".ssh/config").unlink()

    def endpoint(host: str = "node1", **fields: object) -> dict[str, object]:
        return {
            "hostname": hosts.hosts[host],
            "user": "root",
            "identity_file": str(hosts.identity),
            **fields,
        }

    return endpoint


@pytest.fixture
def instance(request: pytest.FixtureRequest) -> Callable[..., InstanceRequest]:
    """Instances of this test's own."""
    name = re.sub("[^a-z0-9]+", "-", request.node.name).strip("-")

    def make(host_key: str = "", **endpoint: object) -> InstanceRequest:
        endpoint = {"hostname": "node1", **endpoint}
        return InstanceRequest(
            f"uid-{name}", name, "fleet", {}, provider="ssh", endpoint=endpoint, host_key=host_key
        )

    return make
