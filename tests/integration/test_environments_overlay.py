"""The shown base with two environments on it: each is checked, and one is applied for real."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from pathlib import Path

import pytest

from forkserver import program
from leftovers import end_agents

SHOWN = Path(__file__).parents[2] / "environments" / "overlay"
PATIENCE_SECONDS = 120.0


@pytest.fixture
def run(tmp_path):
    """Types a command in the copied production tree, with a state of this test."""
    trees = tmp_path / "overlay"
    shutil.copytree(SHOWN, trees)
    environment = trees / "production" / "environment.yaml"
    text = environment.read_text(encoding="utf-8")
    (uid,) = [line for line in text.splitlines() if line.startswith("uid: ")]
    environment.write_text(text.replace(uid, f"uid: {uuid.uuid4().hex}"), encoding="utf-8")

    def type_command(*arguments):
        return subprocess.run(
            [program(), *arguments],
            cwd=trees / "production",
            env={**os.environ, "FLEETFORM_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "200"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )

    yield type_command
    end_agents(tmp_path / "state")


@pytest.mark.parametrize("folder", ["base", "staging", "production"])
def test_each_folder_is_right(run, folder):
    """The base too, which is never applied itself."""
    done = run("validate", f"../{folder}", "--strict")
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_environment_on_a_base_runs_and_follows_it(run, tmp_path):
    """It runs with its values; a change of the base marks what has run, and runs nothing."""
    done = run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "epoch 5 of 5 at rate 0.01" in run("logs", "train").stdout
    assert run("plan", "--detailed-exitcode").returncode == 0
    script = tmp_path / "overlay" / "base" / "code" / "train.sh"
    script.write_text(script.read_text(encoding="utf-8") + "echo more\n", encoding="utf-8")
    plan = run("plan")
    assert "inherited values changed: its result is kept and marked outdated" in plan.stdout
    done = run("apply", "-y")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "more" not in run("logs", "train").stdout
    for command in (["rerun", "train"], ["apply", "-y"]):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "more" in run("logs", "train").stdout
