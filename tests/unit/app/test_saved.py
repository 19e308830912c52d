"""A plan of a file is judged anew, also by what stands in no ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

import applied
from fleetform.app.observe import refreshed
from fleetform.app.plan import make_plan
from fleetform.app.saved import read_plan_file, require_standing, write_plan_file
from fleetform.app.workspace import Workspace
from fleetform.model.plan import Permissions, Plan, Scope
from fleetform.model.refusals import StalePlan

VOLUME = "type: volume\nname: data\nfleet: local\npath: data\n"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Applied, as the ledger has it; the volume's directory is not there."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    root = applied.write_tree(tmp_path / "lab", applied.FLEET, VOLUME)
    applied.enter(root)
    applied.run_all(root, exit_codes={})
    return Workspace.open(str(root))


def kept(workspace: Workspace, path: Path) -> Plan:
    """Begin the volume anew, as a plan in a file does that was made after a look."""
    live = refreshed(workspace).live
    scope = Scope(replaces=("volume/data",))
    now_ms = applied.NOW_MS
    plan = make_plan(workspace, workspace.load(), Permissions(), scope, now_ms=now_ms, live=live)
    assert [str(change.key) for change in plan.changes if change.key.kind == "volume"]
    write_plan_file(workspace, plan, str(path), Permissions(), who="ada", now_ms=now_ms)
    return read_plan_file(workspace, str(path))


def test_what_a_look_has_found_is_looked_at_again(workspace: Workspace, tmp_path: Path) -> None:
    """A plan that relies on a loss stands as long as it is one, and no longer."""
    plan = kept(workspace, tmp_path / "today.plan")
    assert require_standing(workspace, plan) is None
    reader = workspace.reader()
    assert reader is not None
    uid = next(one.uid for one in reader.read_live().resources.values() if one.key.kind == "volume")
    place = workspace.paths.volumes / "data"
    place.mkdir(parents=True)
    mark = f'{{"environment_uid": "{applied.UID}", "volume_uid": "{uid}", "name": "data"}}'
    (place / ".fleetform-volume").write_text(mark)
    with pytest.raises(StalePlan, match="a missing directory is created again only"):
        require_standing(workspace, plan)
