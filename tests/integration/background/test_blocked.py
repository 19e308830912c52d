"""An apply follows what it starts; what is at work beside it goes on under a background controller."""

from __future__ import annotations

import os
import signal

import pytest

from integration.background.background import process_of
from integration.ledger.lab import FLEET, Lab, task, wait_until


def _long(lab: Lab, word: str) -> str:
    """A run that goes on until the test says so."""
    wait = f"until [ -e {lab.folder}/gate ]; do sleep 0.1; done"
    return task("long", lab.says("begun"), wait, lab.says(word))


@pytest.fixture
def running(lab: Lab) -> Lab:
    """A lab with a run at work, and no controller."""
    lab.declare(FLEET, _long(lab, "old"))
    done = lab.run("apply", "-y", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    lab.wait_until_said("begun")
    os.kill(process_of(lab), signal.SIGKILL)
    wait_until(lambda: lab.json("controller", "show") is None, lambda: "it lives on")
    return lab


def _end(lab: Lab) -> None:
    (lab.folder / "gate").touch()
    lab.wait_until_state("long", "done")
    assert lab.said() == ["begun", "old"]


@pytest.mark.parametrize(
    "command", [("apply",), ("set", "long", "nodes=2", "--apply")], ids=lambda words: words[0]
)
def test_a_change_that_is_blocked_is_said_at_once(running: Lab, command: tuple[str, ...]) -> None:
    """Exit code 3 while the run that blocks it goes on, driven by a background controller."""
    running.declare(FLEET, _long(running, "new"))
    done = running.run(*command, "-y")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the background controller" in done.stderr
    assert process_of(running)
    assert running.states() == {"long": "running"}
    running.declare(FLEET, _long(running, "old"))
    _end(running)


def test_a_run_that_starts_is_followed_without_those_at_work(running: Lab) -> None:
    """The apply ends with the run that it started, and leaves the other to a background controller."""
    running.declare(FLEET, _long(running, "old"), task("short", "echo hello"))
    done = running.run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Done: 1 run succeeded." in done.stdout
    assert process_of(running)
    assert running.states() == {"long": "running", "short": "done"}
    _end(running)


def test_a_run_that_is_named_is_followed_though_its_change_is_blocked(running: Lab) -> None:
    """`--target` asks for it: the apply ends with the run, and its change has stayed blocked."""
    running.declare(FLEET, _long(running, "new"))
    apply = running.start("apply", "-y", "--target", "long")
    wait_until(lambda: running.json("controller", "show") is not None, lambda: "no apply")
    (running.folder / "gate").touch()
    code, output = running.finish(apply)
    assert code == 3, output
    assert running.said() == ["begun", "old"]
    assert running.states() == {"long": "done"}
