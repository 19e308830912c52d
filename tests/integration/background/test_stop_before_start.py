"""A run that is stopped before it starts ends as `stopped`, as one that runs does."""

from __future__ import annotations

import os
import signal

from integration.background.background import process_of
from integration.ledger.lab import FLEET, Lab, task, wait_until

AFTER = "depends_on: ['arr[3]']\n"


def _array(lab: Lab, more: str = "") -> str:
    """Four elements, of which one runs at a time, until the test says so."""
    wait = f"until [ -e {lab.folder}/gate ]; do sleep 0.1; done"
    element = lab.says("e$FLEETFORM_ARRAY_INDEX")
    return task("arr", element, wait, more=f"array: 1-4%1\n{more}")


def _begin(lab: Lab) -> None:
    lab.declare(FLEET, _array(lab), task("after", lab.says("after"), more=AFTER))
    assert lab.run("apply", "-y", "--detach").returncode == 0
    lab.wait_until_said("e1")


def test_an_element_that_waits_ends_when_it_is_stopped(lab: Lab) -> None:
    """Its dependant is aborted, `why` says why, and `rerun` submits the element again."""
    _begin(lab)
    done = lab.run("stop", "arr[3]", "--apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.wait_until_state("after", "aborted")
    assert lab.states() == {
        "arr[1]": "running", "arr[2]": "submitted", "arr[3]": "stopped", "arr[4]": "submitted",
        "after": "aborted",
    }  # fmt: skip
    assert (
        "arr[3] is stopped: its document says `state: stopped`" in lab.run("why", "arr[3]").stdout
    )
    assert "it had been stopped" in lab.run("why", "after").stdout
    assert "No changes" in lab.run("plan").stdout
    (lab.folder / "gate").touch()
    lab.wait_until_state("arr[4]", "done")
    assert lab.said() == ["e1", "e2", "e4"]
    done = lab.run("rerun", "arr[3]", "--apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["e1", "e2", "e4", "e3"]


def test_a_run_that_is_declared_stopped_never_starts(lab: Lab) -> None:
    """The apply ends with it, no controller is missing, and it runs once the line is removed."""
    lab.declare(FLEET, task("train", lab.says("ran"), more="state: stopped\n"))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.states() == {"train": "stopped"}
    assert "no controller" not in lab.run("ps").stderr
    assert "No changes" in lab.run("plan").stdout
    lab.declare(FLEET, task("train", lab.says("ran")))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["ran"]
    assert lab.states() == {"train": "done"}


def test_a_stop_survives_the_death_of_the_controller(lab: Lab) -> None:
    """Whoever was killed before it ended the run: the next apply, without changes, ends it."""
    _begin(lab)
    os.kill(process_of(lab), signal.SIGKILL)
    wait_until(lambda: lab.json("controller", "show") is None, lambda: "it lives on")
    lab.declare(
        FLEET, _array(lab, "state: {2-4: stopped}\n"), task("after", lab.says("after"), more=AFTER)
    )
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    os.kill(process_of(lab), signal.SIGKILL)
    (lab.folder / "gate").touch()
    done = lab.run("apply", "-y")
    assert lab.states() == {
        "arr[1]": "done", "arr[2]": "stopped", "arr[3]": "stopped", "arr[4]": "stopped",
        "after": "aborted",
    }, done.stdout + done.stderr  # fmt: skip
    assert lab.said() == ["e1"]
