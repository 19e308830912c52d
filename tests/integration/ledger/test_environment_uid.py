"""The forms that an environment's uid may have, and what happens where it is changed."""

from __future__ import annotations

import os
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


def test_a_plan_is_not_applied_under_another_uid(lab: Lab, tmp_path: Path) -> None:
    """A uid that was changed since the plan a plan was kept is named, and nothing is made."""
    lab.declare(FLEET, task("first", lab.says("first")))
    file = tmp_path / "kept.plan"
    assert lab.run("plan", "--out", str(file)).returncode == 0
    lab.take_uid("b" * 32)
    done = lab.run("apply", str(file))
    assert done.returncode == 1, done.stdout + done.stderr
    assert "environment.yaml has another uid now" in done.stderr
    assert not list(lab.state.glob("environments/*/ledger.db"))


_CHANGE = """
import sys
from pathlib import Path
from fleetform.cli import apply_flow
from fleetform.cli.entry import main

def ask(*_arguments, **_named):
    file = Path("environment.yaml")
    file.write_text(file.read_text().replace("uid: ", "uid: f"))

apply_flow.ask = ask
sys.argv = ["fleetform", "apply"]
sys.exit(main())
"""


def test_a_uid_that_changes_while_apply_asks_ends_it(lab: Lab) -> None:
    """What was shown is of the environment that the folder held then: it is refused, and why."""
    lab.declare(FLEET, task("first", lab.says("first")))
    done = lab.run_python(_CHANGE)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "environment.yaml now has the uid f" in done.stderr
    assert "nothing was changed; put the uid back" in done.stderr
    assert lab.said() == []


@pytest.mark.parametrize("variable", ["FLEETFORM_STATE_HOME", "FLEETFORM_CONFIG_HOME"])
def test_a_folder_whose_path_is_no_text_is_refused(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """One sentence names the variable and the path, whatever the command."""
    lab.declare(FLEET, task("first", lab.says("first")))
    path = os.fsdecode(os.fsencode(lab.folder) + b"/\xff")
    if variable == "FLEETFORM_STATE_HOME":
        lab.state = Path(path)
    else:
        monkeypatch.setenv(variable, path)
    for command in ("plan", "apply -y", "state upgrade"):
        done = lab.run(*command.split())
        assert done.returncode == 1, (command, done.stdout)
        assert f"{variable} is `{lab.folder}/\\xff`, a path that is not UTF-8" in done.stderr
        assert "bug in fleetform" not in done.stderr
