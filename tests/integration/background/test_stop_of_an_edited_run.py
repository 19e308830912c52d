"""A running run can be stopped, whatever else has changed in its document."""

from __future__ import annotations

from integration.ledger.lab import FLEET, Lab, task

WAIT = "sleep 600"
QUICK = "stop_duration: 1s\n"


def _begin(lab: Lab, more: str = "") -> None:
    lab.declare(FLEET, task("train", lab.says("old"), WAIT, more=QUICK + more))
    assert lab.run("apply", "-y", "--detach").returncode == 0
    lab.wait_until_said("old")


def test_the_stop_of_an_edited_run_is_carried_out(lab: Lab) -> None:
    """It ends with the document that it executes; the new one runs with the next `rerun`."""
    _begin(lab)
    lab.declare(FLEET, task("train", lab.says("new"), more=QUICK))
    done = lab.run("stop", "train", "--apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "`commands` changed: takes effect when it runs again" in done.stdout
    assert lab.states() == {"train": "stopped"}
    plan = lab.run("plan").stdout
    assert "No changes" in plan
    assert "train: its document changed after it started" in plan
    assert "inherited" not in lab.run("ps").stdout
    assert "executed an earlier version" in lab.run("blame", "train").stderr
    assert lab.said() == ["old"]
    done = lab.run("rerun", "train", "--apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["old", "new"]
    assert "executed an earlier version" not in lab.run("blame", "train").stderr


def test_an_element_is_stopped_although_its_array_was_edited(lab: Lab) -> None:
    """Only that element: the others are blocked and continue. `--detach` waits for no end."""
    _begin(lab, "array: 1-2\n")
    lab.wait_until(lambda: lab.said() == ["old", "old"])
    changed = task("train", lab.says("new"), WAIT, more=f"{QUICK}array: 1-2\n")
    lab.declare(FLEET, changed)
    done = lab.run("stop", "train[2]", "--apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.wait_until_state("train[2]", "stopped")
    assert lab.states() == {"train[1]": "running", "train[2]": "stopped"}


def test_a_finished_run_runs_its_new_version_after_the_stop(lab: Lab) -> None:
    """While it is stopped, the result is marked; without the line it runs what it says by then."""
    lab.declare(FLEET, task("train", lab.says("old")))
    assert lab.run("apply", "-y").returncode == 0
    lab.declare(FLEET, task("train", lab.says("new"), more="state: stopped\n"))
    plan = lab.run("plan").stdout
    assert "takes effect when it runs again" in plan
    assert "ends it" not in plan
    assert lab.run("apply", "-y").returncode == 0
    assert "its document changed after it started" in lab.run("ps").stdout
    lab.declare(FLEET, task("train", lab.says("new")))
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["old", "new"]
    assert "No changes" in lab.run("plan").stdout


def test_a_stop_says_what_the_next_apply_needs(lab: Lab) -> None:
    """The end of running work needs a permission, and the edit says so, also when it is repeated."""
    _begin(lab)
    for _ in range(2):
        said = lab.run("stop", "train").stderr
        assert "`fleetform apply --allow-destroy` ends the running work of `train`" in said
    assert lab.run("apply", "-y", "--detach").returncode == 3
    assert lab.states() == {"train": "running"}
    done = lab.run("apply", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.states() == {"train": "stopped"}


def test_a_renamed_run_is_stopped_by_its_new_name(lab: Lab) -> None:
    """Its row still has the earlier name, and no document of it was removed."""
    _begin(lab)
    environment = lab.tree / "environment.yaml"
    moved = "moved:\n  - {from: run/train, to: run/kept}\n"
    environment.write_text(environment.read_text() + moved)
    lab.declare(FLEET, task("kept", lab.says("old"), WAIT, more=QUICK))
    said = lab.run("stop", "train").stderr
    assert "`train` is renamed to `kept` by `moved:` in environment.yaml" in said
    assert "help: use the new name: `kept`" in said
    assert "removed" not in said
    assert "the running work of `kept`" in lab.run("stop", "kept").stderr
    assert "is not over yet: running" in lab.run("rerun", "kept").stderr
    done = lab.run("apply", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.states() == {"kept": "stopped"}
