"""What a background controller is started with, and when."""

from __future__ import annotations

from pathlib import Path

import pytest

import applied
from fleetform.app.background_start import child_environment, has_work
from fleetform.app.ledger import open_for_writing
from fleetform.app.workspace import Workspace


def test_few_variables_are_passed_on() -> None:
    """The usual ones, ours, and those that are named and set; the names of the last are told."""
    environ = {
        "HOME": "/home/ada",
        "PATH": "/bin",
        "FLEETFORM_LEDGER": "postgresql://lab",
        "AWS_PROFILE": "prod",
        "GITHUB_TOKEN": "s3cret",
    }
    kept, extra = child_environment(environ, ("AWS_PROFILE", "AWS_REGION", "HOME"))
    assert extra == ("AWS_PROFILE",)
    assert kept == {name: environ[name] for name in environ if name != "GITHUB_TOKEN"}


def test_a_relative_file_of_the_address_is_found_from_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The controller works in `/`."""
    monkeypatch.chdir(tmp_path)
    kept, _ = child_environment({"FLEETFORM_LEDGER_FILE": "address"}, ())
    assert kept["FLEETFORM_LEDGER_FILE"] == str(tmp_path / "address")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CACHE_HOME", "")
    run = "type: task\nname: train\ncommands: [echo hi]\n"
    return applied.write_tree(tmp_path / "lab", applied.FLEET, run)


def test_work_is_left_until_the_last_run_is_over(root: Path) -> None:
    """Nothing applied and everything done are no work; a run that waits is."""
    workspace = Workspace.open(str(root))
    assert not has_work(workspace)
    applied.enter(root)
    assert has_work(workspace)
    applied.run_all(root, exit_codes={})
    assert not has_work(workspace)


def test_a_recovering_ledger_is_no_work(root: Path) -> None:
    """No controller may do anything before its hosts were asked."""
    workspace = Workspace.open(str(root))
    applied.enter(root)
    ledger = open_for_writing(workspace)
    ledger.begin_recovery("an older copy")
    ledger.close()
    assert not has_work(workspace)
