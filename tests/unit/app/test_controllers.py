"""Which controller an environment has, as it is read from the lease and the state folder."""

from __future__ import annotations

from pathlib import Path

import pytest

import applied
from fleetform.app.controllers import BackgroundStart, note_start, read_controller
from fleetform.app.managing import try_manage
from fleetform.app.workspace import Workspace
from fleetform.model.leadership import BACKGROUND
from fleetform.views.controllers import ControllerKind


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    return Workspace.open(str(applied.write_tree(tmp_path / "lab", applied.FLEET)))


def test_a_background_controller_is_read_with_how_it_was_started(workspace: Workspace) -> None:
    """The lease says who it is, the file beside the ledger what it was started with."""
    manager_lease = try_manage(workspace, who="ada", command=BACKGROUND)
    assert manager_lease is not None
    with manager_lease:
        start = BackgroundStart(
            manager_lease.holder.pid, ("AWS_PROFILE",), "it ends with the CI job"
        )
        note_start(workspace.paths, start)
        row = read_controller(workspace)
        assert row is not None
        assert (row.kind, row.who, row.pid) == (ControllerKind.BACKGROUND, "ada", start.pid)
        assert row.log == str(workspace.paths.background_log)
        assert (row.variables, row.warning) == (start.variables, start.warning)
    assert read_controller(workspace) is None


def test_the_file_of_an_earlier_controller_is_not_believed(workspace: Workspace) -> None:
    """What was written down of another process says nothing of this one."""
    manager_lease = try_manage(workspace, who="ada", command=BACKGROUND)
    assert manager_lease is not None
    with manager_lease:
        note_start(workspace.paths, BackgroundStart(manager_lease.holder.pid + 1, ("OLD",), "old"))
        row = read_controller(workspace)
    assert row is not None
    assert (row.variables, row.warning) == ((), "")
