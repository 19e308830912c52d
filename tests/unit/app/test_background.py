"""How a background controller ends: what it says, and when it releases the manager lease."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path

import pytest

import applied
from fleetform.app import background
from fleetform.app.background import drive
from fleetform.app.controllers import BackgroundStart
from fleetform.app.workspace import Workspace
from fleetform.cli.progress.plain import PlainProgress
from fleetform.cli.screen import Screen
from fleetform.model.leadership import BACKGROUND, Holder
from fleetform.store.lock import asking

Ends = list[tuple[Exception | None, Holder | None]]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    return Workspace.open(str(applied.write_tree(tmp_path / "lab", applied.FLEET)))


def _drive(workspace: Workspace, ends: Ends) -> None:
    """Drive until a request for the lease; note each end with who holds the lease by then."""

    async def until_asked() -> None:
        began = asyncio.Event()
        driving = asyncio.ensure_future(
            drive(
                workspace,
                BackgroundStart(os.getpid()),
                who="ada",
                ready=lambda _: began.set(),
                ended=lambda error: ends.append((error, workspace.manager())),
                progress=PlainProgress(Screen(io.StringIO())),
            )
        )
        waiting = asyncio.ensure_future(began.wait())
        await asyncio.wait((driving, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        with asking(workspace.paths.manager_request):
            await driving

    asyncio.run(until_asked())


def test_it_says_its_end_before_it_releases_the_lease(workspace: Workspace) -> None:
    """The next process that has the lease finds a log that is complete."""
    ends: Ends = []
    _drive(workspace, ends)
    [(error, holder)] = ends
    assert error is None
    assert holder is not None
    assert (holder.pid, holder.command) == (os.getpid(), BACKGROUND)
    assert workspace.manager() is None


def test_it_says_its_error_before_it_releases_the_lease(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What ends it is told once, while it still has the lease."""
    broken = ValueError("broken")

    def fail(*_: object, **__: object) -> None:
        raise broken

    monkeypatch.setattr(background, "build_manager", fail)
    ends: Ends = []
    with pytest.raises(ValueError, match="broken"):
        _drive(workspace, ends)
    [(error, holder)] = ends
    assert error is broken
    assert holder is not None
    assert workspace.manager() is None
