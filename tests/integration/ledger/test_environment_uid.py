"""The forms that an environment's uid may have, and what happens where it is changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.ledger.lab import FLEET, Lab, task

UIDS = {
    "with dashes": "0b2f6a0e-54c5-4a8e-8f0c-5d3f2f1c9a77",
    "short": "lab1",
    "as long as may be": f"{'long-' * 12}uid1",
}


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the ledger is."""
    if request.param == "postgresql":
        monkeypatch.setenv("FLEETFORM_LEDGER", request.getfixturevalue("postgres").url)


@pytest.mark.usefixtures("database")
@pytest.mark.parametrize("uid", UIDS.values(), ids=UIDS.keys())
def test_each_form_of_a_uid_works(lab: Lab, tmp_path: Path, uid: str) -> None:
    """Plan, apply, a backup and a rebuild work, and `lock list` finds the environment."""
    lab.take_uid(uid)
    lab.declare(FLEET, task("first", lab.says("first")))
    assert lab.run("plan").returncode == 0
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.run("state", "backup", str(tmp_path / "backup")).returncode == 0
    assert lab.run("state", "rebuild").returncode == 0
    assert lab.json("plan")["resource_changes"] == []
    listed = lab.run("lock", "list")
    assert listed.returncode == 0, listed.stderr
    assert uid[:4] in listed.stdout
    assert lab.said() == ["first"]
