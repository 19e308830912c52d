"""
How deep the code is between a command and what it is for.

A stack that a person reads in a traceback has one frame a decision. Frames that only hand on are
where names repeat, and where the next parameter is passed through by everybody.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import applied

FRAMES_MAX = 6

PROBE = """
import sys, traceback
from fleetform.apply.execute import Outcome
from fleetform.cli.main import main
from fleetform.controllers import manager

async def execute(plan, *_, **__):
    for frame in traceback.extract_stack():
        print("frame", frame.filename, frame.name, file=sys.stderr)
    return Outcome(failed={step.key: "not tried" for step in plan.steps})

manager.execute = execute
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("kept", [True, False], ids=["apply FILE", "apply"])
def test_apply_calls_execute_in_few_frames(kept, tmp_path) -> None:
    """From the command's function to `execute`, both counted, of this project's frames."""
    applied.write_tree(tmp_path / "lab", applied.FLEET)
    state = str(tmp_path / "state")

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", PROBE, *arguments],
            cwd=tmp_path / "lab",
            env={"PATH": "/usr/bin:/bin", "FLEETFORM_STATE_HOME": state, "HOME": state},
            capture_output=True,
            text=True,
            check=False,
        )

    if kept:
        assert run("plan", "--out", "today.plan").returncode in {0, 2}
    told = run("apply", *(["today.plan"] if kept else ["-y"])).stderr
    frames = [
        line.split()[1:]
        for line in told.splitlines()
        if line.startswith("frame ") and "/fleetform/" in line
    ]
    names = [f"{path.partition('/fleetform/')[2]} {name}" for path, name in frames]
    assert "cli/commands/apply.py command" in names, told
    since = names[names.index("cli/commands/apply.py command") :]
    assert len(since) + 1 <= FRAMES_MAX, since
