"""The shown environment on AWS, as far as commands go that need no cloud."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from forkserver import program

SHOWN = Path(__file__).parents[2] / "environments" / "cloud"


def test_it_is_planned_without_a_cloud(tmp_path):
    """Its documents are right, and the plan names the offer and the cost."""
    environment = {**os.environ, "FLEETFORM_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "200"}

    def run(*words):
        return subprocess.run(
            [program(), *words],
            cwd=SHOWN,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    run("validate", "--strict")
    shown = run("plan")
    assert "creates: gpus-0, gpus-1 (g5.xlarge in us-east-1, $1.006/h each" in shown
    assert "Cost of the changed fleets: $0.00/h → $2.02/h" in shown
