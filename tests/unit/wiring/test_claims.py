"""What a new volume would take of this machine is looked at, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import applied
from fleetform.spec.desired import ResourceKey
from fleetform.wiring.claims import with_claims
from fleetform.wiring.planning import nothing_yet
from fleetform.wiring.workspace import Workspace

DATA = ResourceKey("volume", "data")


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    volume = f"type: volume\nname: data\nfleet: local\npath: {tmp_path}/shared\n"
    return Workspace.open(str(applied.write_tree(tmp_path / "lab", applied.FLEET, volume)))


def mark(tmp_path: Path, **said: object) -> None:
    (tmp_path / "shared").mkdir(exist_ok=True)
    (tmp_path / "shared" / ".fleetform-volume").write_text(json.dumps(said))


def claims(workspace: Workspace) -> dict[ResourceKey, str]:
    desired = workspace.load().desired
    assert desired is not None
    live = with_claims(workspace, desired, nothing_yet(desired))
    return {key: claim.sentence for key, claim in live.claims.items()}


def test_another_environment_is_named(workspace: Workspace, tmp_path: Path) -> None:
    """By name, uid and date where the mark says so, else by its uid alone."""
    mark(tmp_path, environment_uid="u-2", environment="theirs", name="v", made_at_ms=1000)
    shared = f"{tmp_path}/shared is volume v of environment"
    assert claims(workspace) == {DATA: f"{shared} theirs (u-2) since 1970-01-01T00:00:01Z"}
    mark(tmp_path, environment_uid="u-2", name="v")
    assert claims(workspace) == {DATA: f"{shared} u-2"}


def test_what_is_ours_or_nobodys_is_no_claim(workspace: Workspace, tmp_path: Path) -> None:
    """No directory, no mark, half a mark, and our own."""
    assert claims(workspace) == {}
    mark(tmp_path, environment_uid=applied.UID, name="data")
    assert claims(workspace) == {}
    (tmp_path / "shared" / ".fleetform-volume").write_text("{")
    assert claims(workspace) == {}


def test_what_is_there_as_declared_is_not_looked_at(workspace: Workspace, tmp_path: Path) -> None:
    """Whether it is still ours is drift's to say; a plan with nothing to do opens no file."""
    applied.enter(workspace.root)
    mark(tmp_path, environment_uid="u-2", name="v")
    desired = workspace.load().desired
    reader = workspace.reader()
    assert desired is not None
    assert reader is not None
    live = reader.read_live()
    assert with_claims(workspace, desired, live) is live
    changed = replace(live.resources[DATA], digest="other")
    moved = replace(live, resources={**live.resources, DATA: changed})
    assert DATA in with_claims(workspace, desired, moved).claims
