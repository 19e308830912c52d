"""An instance's folder: whose it is, also when nobody serves it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.local.folder import Folder, Owner, instance_folders

CLAIM = {"uid": "u", "name": "fleet-0", "fleet": "fleet", "environment_uid": "e"}


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder(tmp_path / "e" / "fleet-0")


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*"))


def test_a_claim_is_remembered(folder) -> None:
    """Claiming twice is claiming once, and only its user may enter the folder."""
    folder.claim(**CLAIM)
    folder.claim(**CLAIM)
    assert folder.identity() == CLAIM
    assert files(folder.path) == ["instance.json"]
    assert folder.path.stat().st_mode & 0o777 == 0o700


def test_another_instance_is_not_overwritten(folder) -> None:
    """Its jobs may still run: a person decides."""
    folder.claim(**CLAIM)
    with pytest.raises(PermanentError, match="exists on this machine as u, not as v"):
        folder.claim(**{**CLAIM, "uid": "v"})
    assert folder.identity() == CLAIM


def test_a_renamed_fleet_is_noted(folder) -> None:
    """The uid is the identity; the rest may change."""
    folder.claim(**CLAIM)
    folder.claim(**{**CLAIM, "fleet": "other"})
    assert folder.identity()["fleet"] == "other"


def test_nobody_owns_an_agent_that_was_never_greeted(folder) -> None:
    """Whom it obeys is noted with the first welcome, beside who it is."""
    folder.claim(**CLAIM)
    assert folder.owner() == Owner("", 0)
    for _ in range(2):
        folder.note_owner(Owner("l", 4, 7))
    assert folder.owner() == Owner("l", 4, 7)
    assert json.loads((folder.path / "owner.json").read_text()) == {
        **CLAIM,
        "ledger_id": "l",
        "epoch": 4,
        "fence": 7,
    }


def test_how_far_its_ledger_has_come_is_noted(folder) -> None:
    """It counts for the ledger and epoch that the agent obeys, and for no other."""
    folder.claim(**CLAIM)
    folder.note_owner(Owner("l", 4, 7))
    assert folder.commits() == 0
    for commits in (98, 100):
        folder.note_commits("l", 4, commits)
        assert folder.commits() == commits
    folder.note_owner(Owner("l", 5, 7))
    assert folder.commits() == 0
    folder.note_commits("k", 5, 200)
    assert folder.commits() == 0


@pytest.mark.parametrize("line", ["", "l 4 7", "l 4 8 7", "l 4 7 7 7", "l 4 x x", "\udcff"])
def test_a_note_that_cannot_be_read_proves_nothing(folder, line) -> None:
    """Nor does one that is read in the middle of a write."""
    folder.claim(**CLAIM)
    folder.note_owner(Owner("l", 4, 7))
    (folder.path / "heard").write_text(line, errors="surrogateescape")
    assert folder.commits() == 0


def test_a_full_disk_takes_no_note_and_ends_nothing(folder) -> None:
    """Where the note cannot be written, the acknowledgement is said all the same."""
    folder.claim(**CLAIM)
    (folder.path / "heard").mkdir()
    folder.note_commits("l", 4, 7)
    assert folder.commits() == 0


@pytest.mark.parametrize("content", ["", "{", "[]", "\udcff"])
def test_a_damaged_file_is_not_taken_for_a_missing_one(folder, content) -> None:
    """Who owns an instance is never guessed."""
    folder.claim(**CLAIM)
    (folder.path / "instance.json").write_text(content, errors="surrogateescape")
    with pytest.raises(PermanentError, match=r"instance\.json"):
        folder.claim(**CLAIM)


def test_removing_takes_everything_at_once(folder) -> None:
    """Also what an earlier removal left behind; removing nothing is fine."""
    folder.claim(**CLAIM)
    (folder.path / "jobs").mkdir()
    folder.path.rename(folder.path.with_name(".released-fleet-0"))
    folder.claim(**CLAIM)
    folder.remove()
    folder.remove()
    assert files(folder.path.parent) == []


def test_folders_are_listed_by_name(tmp_path) -> None:
    """What is leaving, and files, are no instances; an unknown environment has none."""
    for name in ("b", "a", ".released-c"):
        (tmp_path / "e" / name).mkdir(parents=True)
    (tmp_path / "e" / "file").touch()
    assert [folder.path.name for folder in instance_folders(tmp_path / "e")] == ["a", "b"]
    assert list(instance_folders(tmp_path / "f")) == []
