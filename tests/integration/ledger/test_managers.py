"""Several commands on one environment, and commands that are ended at the wrong moment."""

from __future__ import annotations

import signal
import time

import pytest

from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task

ARRAY = "array: 1-20\n"


def test_two_applies_at_once_run_everything_once(lab: Lab) -> None:
    """Both end well and each run ran once, whichever of them drove it."""
    lab.declare(FLEET, task("many", lab.says("$FLEETFORM_ARRAY_INDEX"), more=ARRAY))
    both = [lab.start("apply", "-y"), lab.start("apply", "-y")]
    for child in both:
        code, output = lab.finish(child)
        # The slower goes on with what is left of what was approved, if anything is.
        assert code == 0, output
    assert lab.run("apply", "-y").returncode == 0
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, 21)]


def test_an_apply_beside_serve_hands_over_and_follows(lab: Lab) -> None:
    """What an apply enters is carried out by serve, and the apply sees it to its end."""
    lab.declare(FLEET)
    serve = lab.start("serve")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "local" not in lab.run("fleet", "list").stdout:
        assert time.monotonic() < deadline, "serve does not make the fleet"
        time.sleep(0.1)
    lab.declare(FLEET, task("one", lab.says("one"), "sleep 0.5"))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert serve.poll() is None
    deadline = time.monotonic() + PATIENCE_SECONDS
    while lab.states().get("one") != "done":
        assert time.monotonic() < deadline, lab.states()
        time.sleep(0.1)
    serve.send_signal(signal.SIGTERM)
    code, output = lab.finish(serve)
    assert code in {0, 130}, output
    assert lab.said() == ["one"]


def test_ctrl_c_leaves_the_runs_alone(lab: Lab) -> None:
    """An interrupted apply ends with 130 and a sentence; the next one goes on with the same run."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("long", lab.says("begun"), wait, lab.says("ended")))
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    apply.send_signal(signal.SIGINT)
    code, output = lab.finish(apply)
    assert code == 130, output
    assert "Traceback" not in output
    assert lab.states()["long"] in {"running", "preparing"}
    gate.touch()
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert lab.said() == ["begun", "ended"]


@pytest.mark.parametrize("delay", [0.15, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3])
def test_an_apply_that_is_killed_is_taken_up_again(lab: Lab, delay: float) -> None:
    """`kill -9` between any two steps; the same command again finishes, and nothing runs twice."""
    lab.declare(
        FLEET,
        "type: volume\nname: data\nfleet: local\npath: data\n",
        task("many", lab.says("$FLEETFORM_ARRAY_INDEX"), more=f"{ARRAY}volumes: ['data:data']\n"),
    )
    apply = lab.start("apply", "-y")
    time.sleep(delay)
    apply.kill()
    lab.finish(apply)
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(lab.said(), key=int) == [str(number) for number in range(1, 21)]
    assert set(lab.states().values()) == {"done"}
