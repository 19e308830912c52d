"""How `serve` watches for drift: on a real ledger, of a world in which nothing was really made."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import applied
from fleetform.app import observe
from fleetform.app.ledger import host_provider, open_for_writing
from fleetform.app.managing import try_manage
from fleetform.app.observe import DriftWatch, refreshed
from fleetform.app.workspace import Workspace
from simulation.controller import Silent

VOLUME = "type: volume\nname: data\nfleet: local\npath: data\n"


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str, **_about: object) -> None:
        self.notices.append(text)


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(tmp_path / "lab", applied.FLEET, VOLUME)
    applied.enter(root)
    return Workspace.open(str(root))


def _watched(workspace: Workspace, every_ms: int, story) -> list[str]:
    """Play a story with a watch; returns what it has told."""
    told = Told()

    async def at_once(call):
        return call()

    with closing(open_for_writing(workspace)) as ledger:
        watch = DriftWatch(ledger, at_once, host_provider(workspace), told, every_ms)
        asyncio.run(story(watch, ledger))
    return told.notices


def test_what_has_drifted_is_told_once_and_its_end_too(workspace: Workspace) -> None:
    """Each is an event; a second look at the same says nothing."""
    place = workspace.paths.volumes / "data"

    async def story(watch: DriftWatch, ledger) -> None:
        for _ in range(2):
            assert [one.field for one in (await watch.live()).drift] == ["directory"]
        place.mkdir(parents=True)
        (place / "note").write_text("data")
        assert [one.field for one in (await watch.live()).drift] == ["mark"]
        kinds = [event.kind for event in ledger.read_events() if event.kind.startswith("drift")]
        assert kinds == ["drift.found", "drift.found", "drift.corrected"]

    notices = _watched(workspace, 0, story)
    assert len(notices) == 3
    assert "directory" in notices[0]
    assert "no longer differs" in notices[2]


def test_between_looks_the_ledger_alone_is_read(workspace: Workspace, monkeypatch) -> None:
    """The first look is due after one interval; a plan in between costs no connection."""
    looked = []
    real = observe.look

    async def counted(*arguments):
        looked.append(1)
        return await real(*arguments)

    monkeypatch.setattr(observe, "look", counted)

    async def story(watch: DriftWatch, _ledger) -> None:
        for _ in range(3):
            live = await watch.live()
            assert (live.drift, live.observed_at_ms) == ((), None)

    assert _watched(workspace, 60_000, story) == []
    assert looked == []


def test_a_look_of_a_command_is_recorded_without_the_lock_of_a_manager(
    workspace: Workspace,
) -> None:
    """A plan that looks no further knows of it, and of when it was."""
    manager_lease = try_manage(workspace, who="anna", command="serve")
    assert manager_lease is not None
    with manager_lease:
        found = refreshed(workspace)
    assert [one.field for one in found.live.drift] == ["directory"]
    assert found.unrecorded == ""
    reader = workspace.reader()
    with closing(reader):
        (recorded,) = reader.read_live().recorded_drift
    assert recorded.drift == found.live.drift[0]
    assert recorded.seen_at_ms == found.live.observed_at_ms


def test_a_look_answers_although_the_ledger_is_busy(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says that what it saw is not recorded, and why."""
    monkeypatch.setattr("fleetform.store.database.BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(workspace.paths.ledger, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        found = refreshed(workspace)
    assert [one.field for one in found.live.drift] == ["directory"]
    assert "another process is writing the ledger" in found.unrecorded
