"""`env:` of a fleet, from the configuration to what a job finds, also over changes and crashes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import Lab, task

DIE_BEFORE_THE_FIRST_JOB = """
import os, signal, sys
from fleetform.agents.client.session import Session
from fleetform.cli.entry import main

async def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

Session.prepare = die
sys.argv = ["fleetform", "apply", "-y"]
main()
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    lab = Lab(tmp_path / "lab")
    yield lab
    lab.close()


def fleet(**env: str) -> str:
    variables = "".join(f"  {name}: '{value}'\n" for name, value in env.items())
    return f"type: fleet\nname: local\nlocal: {{cpu: 4, memory: 4GB}}\nenv:\n{variables}"


def changes(lab: Lab) -> dict[str, str]:
    return {one["address"]: one["action"] for one in lab.json("plan")["resource_changes"]}


def test_a_job_has_the_variables_of_its_fleet_below_those_of_its_run(lab: Lab) -> None:
    """The fleet's override the host's defaults, the run's override the fleet's, the product's both."""
    lab.declare(
        fleet(LANG="fleet", TMPDIR="/tmp", NCCL_DEBUG="fleet", FLEETFORM_RUN_NAME="fleet"),
        task("show", lab.says("$LANG,$NCCL_DEBUG,$USER,$TMPDIR,$FLEETFORM_RUN_NAME")),
        task("own", lab.says("own:$LANG,$NCCL_DEBUG"), more="env: {NCCL_DEBUG: run}\n"),
    )
    assert lab.run("apply", "-y").returncode == 0
    user = lab.run_python(
        "import os, pwd; print(pwd.getpwuid(os.geteuid()).pw_name)"
    ).stdout.strip()
    assert sorted(lab.said()) == sorted([f"fleet,fleet,{user},/tmp,show", "own:fleet,run"])


def test_a_change_counts_for_later_attempts_and_runs_nothing_again(lab: Lab) -> None:
    """A running attempt keeps its value through a crash of its agent; a finished run stays as it is."""
    wait = f"while ! test -e {lab.folder}/go; do sleep 0.02; done"
    long = task("long", lab.says("long-begins:$CACHE"), wait, lab.says("long-ends:$CACHE"))
    short = task("short", lab.says("short:$CACHE"))
    lab.declare(fleet(CACHE="old"), long, short)
    started = lab.start("apply", "-y", "--detach")
    assert lab.finish(started)[0] == 0
    lab.wait_until_said("long-begins:old")
    lab.wait_until_state("short", "done")

    lab.declare(fleet(CACHE="new"), long, short)
    assert changes(lab) == {"fleet/local": "update"}
    assert lab.run("apply", "-y", "--detach").returncode == 0
    for agent in lab.agents():
        os.kill(agent, signal.SIGKILL)
    assert changes(lab) == {}
    (lab.folder / "go").touch()
    lab.wait_until_state("long", "done")
    assert sorted(lab.said()) == ["long-begins:old", "long-ends:old", "short:old"]

    assert lab.run("rerun", "short", "--apply", "-y").returncode == 0
    assert lab.said()[-1] == "short:new"


def test_a_job_that_was_placed_before_a_crash_starts_with_what_it_was_placed_with(lab: Lab) -> None:
    """The controller dies before the host hears of the job; the fleet changes, and the job does not."""
    first = task("first", lab.says("first:$CACHE"), more="nodes: 1\n")
    lab.declare(fleet(CACHE="old"), first)
    assert lab.run_python(DIE_BEFORE_THE_FIRST_JOB).returncode == -signal.SIGKILL
    assert lab.states() == {"first": "preparing"}
    lab.declare(fleet(CACHE="new"), first, task("second", lab.says("second:$CACHE")))
    assert lab.run("apply", "-y").returncode == 0
    assert sorted(lab.said()) == ["first:old", "second:new"]
