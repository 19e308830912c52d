"""What is said on a machine that lacks what a cloud needs."""

from __future__ import annotations

import asyncio

import pytest

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.pulumi.aws import requirements
from fleetform.providers.pulumi.aws.hosts import AwsHosts


@pytest.fixture(autouse=True)
def without(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    """Neither the libraries nor the CLI."""
    monkeypatch.setattr(requirements, "LIBRARIES", ("no_such_library",))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path))


def test_the_extra_is_named_before_a_download(tmp_path) -> None:
    """The library downloads the CLI, so that it is missing is no fault of the network."""
    said: list[str] = []
    with pytest.raises(PermanentError, match="the Pulumi library is not installed") as raised:
        asyncio.run(AwsHosts(tmp_path, "e" * 32).install_tools(said.append))
    assert raised.value.advice == "in the clone of fleetform, run `pip install '.[aws]'`"
    assert said == []


def test_what_is_missing_is_missing_on_the_machine() -> None:
    """The sentence names no fleet: it stands behind the name of a host or a region."""
    with pytest.raises(PermanentError, match=r"^the Pulumi library is not installed$"):
        requirements.require_installed()
