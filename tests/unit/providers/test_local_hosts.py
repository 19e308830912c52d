"""What this machine refuses reaches the manager as an error that it knows to wait for."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.providers.local.hosts import LocalHosts

INSTANCE = InstanceRequest("u", "pool-0", "pool", {})


def test_an_archive_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    """A full disk, or a file in the way, ends no manager."""
    (tmp_path / "agent").write_text("in the way")
    with pytest.raises(TemporaryError, match="instance pool-0: this machine refuses an operation"):
        asyncio.run(LocalHosts(tmp_path, "e").ensure(INSTANCE))


def test_a_folder_that_cannot_be_removed_is_tried_again(tmp_path: Path) -> None:
    """A job may have left files that its user may not delete."""
    (tmp_path / "hosts").write_text("in the way")
    with pytest.raises(TemporaryError, match="instance pool-0: this machine refuses an operation"):
        asyncio.run(LocalHosts(tmp_path, "e").release(INSTANCE))


UID = "e" * 32
HOST = InstanceRequest("uid-of-host", "fleet-0", "fleet", {})


def test_an_agent_that_ends_for_want_of_work_rests(tmp_path: Path) -> None:
    """It takes its socket along; one that is killed leaves it, and is missed."""

    async def story() -> None:
        provider = LocalHosts(tmp_path / "state", UID, idle_exit_seconds=1)
        await provider.ensure(HOST)
        deadline = time.monotonic() + 60
        while (seen := (await provider.inventory(UID))[0]).alive:
            assert time.monotonic() < deadline
            # Each look is a connection, and puts the end off.
            await asyncio.sleep(2)
        assert seen.resting
        assert await provider.observe(HOST) is None
        await provider.release(HOST)

    asyncio.run(story())
