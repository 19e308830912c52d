"""Each call goes to the provider of its request; what has no request, to this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fleetform.providers import routing
from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.routing import RoutedHosts


class Noting:
    """Notes what it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[str] = []

    async def ensure(self, request: InstanceRequest) -> tuple[()]:
        self.asked.append(f"ensure {request.name}")
        return ()

    async def release(self, request: InstanceRequest) -> None:
        self.asked.append(f"release {request.name}")

    async def inventory(self, environment_uid: str) -> tuple[()]:
        self.asked.append(f"inventory {environment_uid}")
        return ()


def test_a_call_goes_to_the_provider_of_its_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider is made once, and only when it is needed."""
    made: dict[str, Noting] = {}

    def make(name: str, *, state: Path, environment_uid: str, stacks: object) -> Noting:
        assert name not in made
        made[name] = Noting(name)
        return made[name]

    monkeypatch.setattr(routing, "provider", make)

    async def story() -> None:
        hosts = RoutedHosts(tmp_path, "e")
        elsewhere = InstanceRequest("u", "node1", "gpu", {}, provider="ssh")
        await hosts.ensure(elsewhere)
        assert set(made) == {"ssh"}
        await hosts.release(elsewhere)
        await hosts.ensure(InstanceRequest("v", "local-0", "local", {}))
        await hosts.inventory("e")

    asyncio.run(story())
    assert {name: one.asked for name, one in made.items()} == {
        "ssh": ["ensure node1", "release node1"],
        "local": ["ensure local-0", "inventory e"],
    }


def test_an_unknown_provider_is_refused_by_name(tmp_path: Path) -> None:
    """The error lists the known ones."""
    request = InstanceRequest("u", "n", "f", {}, provider="moon")
    with pytest.raises(PermanentError, match="no provider moon") as caught:
        asyncio.run(RoutedHosts(tmp_path, "e").ensure(request))
    assert "local, ssh" in caught.value.advice


def test_the_variables_of_all_providers_are_named(tmp_path: Path) -> None:
    """A background controller is started with these."""
    assert "SSH_AUTH_SOCK" in RoutedHosts(tmp_path, "e").environment_variables
