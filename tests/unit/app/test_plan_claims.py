"""What a new volume would take of this machine is looked at, and nothing else is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import applied
from fleetform.app.plan import nothing_yet, with_claims
from fleetform.app.workspace import Workspace
from fleetform.model.volume import RetainedData
from fleetform.spec.desired import ResourceKey

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
    live = with_claims(workspace, desired, nothing_yet(desired.environment.uid))
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


def test_a_file_is_no_place_for_a_volume(workspace: Workspace, tmp_path: Path) -> None:
    """Whoever imports a file is told by the plan, and not by a step that fails."""
    (tmp_path / "shared").write_text("no directory")
    assert claims(workspace) == {
        DATA: f"{tmp_path}/shared is not a directory, and a volume must be one"
    }


def test_what_is_to_be_taken_in_is_there(workspace: Workspace, tmp_path: Path) -> None:
    """Whoever imports what is not there is told by the plan; a relative path as where it leads."""
    said = "environment.yaml"
    root = Path(workspace.root)
    with (root / said).open("a") as file:
        file.write("import: [volume/data]\n")
    missing = "does not exist, so there is nothing to import"
    assert claims(workspace) == {DATA: f"{tmp_path}/shared {missing}"}
    (tmp_path / "shared").mkdir()
    assert claims(workspace) == {}
    tree = root / "tree.yaml"
    tree.write_text(tree.read_text().replace(f"{tmp_path}/shared", "inside"))
    place = tmp_path / "state" / "volumes" / applied.UID / "inside"
    assert claims(workspace) == {DATA: f"{place} {missing}"}
    place.mkdir(parents=True)
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


def volume_at(path: Path, name: str = "v", uid: str = "u-2") -> None:
    path.mkdir(parents=True, exist_ok=True)
    said = {"environment_uid": uid, "environment": "theirs", "name": name, "volume_uid": "w"}
    (path / ".fleetform-volume").write_text(json.dumps(said))


def test_a_volume_around_or_within_is_named(workspace: Workspace, tmp_path: Path) -> None:
    """Where the place lies in another's directory, or another's in it; links lead there too."""
    shared = tmp_path / "shared"
    volume_at(shared / "deep" / "inner")
    inner = f"{shared}/deep/inner, inside {shared}, is volume v of environment theirs (u-2)"
    assert claims(workspace) == {DATA: inner}
    shared.rename(tmp_path / "real")
    shared.symlink_to(tmp_path / "real")
    assert "real/deep/inner, inside" in claims(workspace)[DATA]
    volume_at(tmp_path)
    assert claims(workspace)[DATA].startswith(f"{shared} is inside {tmp_path}, which is volume v")


def test_what_lies_beside_is_no_claim(workspace: Workspace, tmp_path: Path) -> None:
    """A volume next to it, and a link in it: what that leads to goes nowhere."""
    volume_at(tmp_path / "shared2")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "link").symlink_to(tmp_path / "shared2")
    assert claims(workspace) == {}


def test_what_is_imported_is_looked_at_in_our_own_folder_too(
    workspace: Workspace, tmp_path: Path
) -> None:
    """A relative path may be a link to another's, or be put around it; a new one needs no look."""
    ours = tmp_path / "state" / "volumes" / applied.UID / "sets"
    volume_at(ours / "inner")
    tree = workspace.root / "volume.yaml"
    tree.write_text("type: volume\nname: data\nfleet: local\npath: sets\n")
    for file in workspace.root.glob("*.yaml"):
        if f"path: {tmp_path}/shared" in (text := file.read_text()):
            file.write_text(text.replace(f"path: {tmp_path}/shared", "path: sets"))
            tree.unlink()
    assert claims(workspace) == {}
    environment = workspace.root / "environment.yaml"
    environment.write_text(f"{environment.read_text()}import: [volume/data]\n")
    assert "inside sets, is volume v" in claims(workspace)[DATA]


def test_what_goes_with_this_plan_is_no_claim(workspace: Workspace, tmp_path: Path) -> None:
    """A volume of ours in or around it that is declared no more, or that is this one."""
    applied.enter(workspace.root)
    volume_at(tmp_path / "shared" / "inner", name="inner", uid=applied.UID)
    desired = workspace.load().desired
    assert desired is not None
    live = nothing_yet(desired.environment.uid)
    assert DATA in with_claims(workspace, desired, live).claims
    reader = workspace.reader()
    assert reader is not None
    live = reader.read_live()
    row = replace(live.resources[DATA], digest="other")
    for name in ("inner", "data"):
        key = ResourceKey("volume", name)
        volume_at(tmp_path / "shared" / "inner", name=name, uid=applied.UID)
        known = replace(live, resources={**live.resources, DATA: row, key: replace(row, key=key)})
        assert with_claims(workspace, desired, known) is known


def test_what_was_left_and_is_gone_does_not_come_back(workspace: Workspace, tmp_path: Path) -> None:
    """A person has removed it, or others have it: the mark that it bore says which."""
    desired = workspace.load().desired
    assert desired is not None
    left = RetainedData("data", "w-1", f"{tmp_path}/shared")
    live = replace(nothing_yet(desired.environment.uid), left=(left,))
    assert with_claims(workspace, desired, live).left == ()
    mark(tmp_path, environment_uid=applied.UID, name="data", volume_uid="w-1")
    assert with_claims(workspace, desired, live).left == (left,)
    mark(tmp_path, environment_uid=applied.UID, name="data", volume_uid="w-2")
    assert with_claims(workspace, desired, live).left == ()
    elsewhere = replace(left, path=f"{tmp_path}/elsewhere")
    live = replace(live, left=(elsewhere,))
    # Nobody asks for it, so nobody looks.
    assert with_claims(workspace, desired, live).left == (elsewhere,)
