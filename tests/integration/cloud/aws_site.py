"""An environment with a fleet on AWS, whose commands meet the cloud of the tests."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

FLEET = """
type: fleet
name: gpus
backends: [aws]
regions: [us-east-1]
instance_types: [g5.xlarge]
nodes: {nodes}
run_as: owner
aws:
  account: "123456789012"
  ssh_from: [203.0.113.7/32]
  image: {image}
"""

ENVIRONMENT = "0123456789abcdef" * 2
"""The uid of the environment."""


class Site:
    """One environment whose commands meet the cloud of the tests."""

    def __init__(self, folder, cloud, image, *, runs_as_root=False):
        self.root = folder / "configuration"
        self.root.mkdir()
        self.cloud, self.image = cloud, image
        self.python = sys.executable
        self.variables = {
            **cloud.environment(),
            "FLEETFORM_STATE_HOME": str(folder / "state"),
            "FLEETFORM_CONFIG_HOME": str(folder / "config"),
            "FLEETFORM_CACHE_HOME": str(folder / "cache"),
        }
        (self.root / "environment.yaml").write_text(
            f"type: environment\nname: clouds\nuid: {ENVIRONMENT}\n"
            + ("grants: {root: true}\n" if runs_as_root else "")
        )

    def list_soon(self):
        """Let later commands expect that the lists of the cloud are never late: recovery waits a second for an instance."""
        soon_listed = Path(__file__).with_name("soon_listed.py")
        python = self.root.parent / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} {soon_listed} "$0" "$@"\n')
        python.chmod(0o755)
        self.python = str(python)

    def declare(self, nodes, *, more=""):
        text = FLEET.format(nodes=nodes, image=self.image)
        if "run_as:" in more:
            text = text.replace("run_as: owner\n", "")
        text += more
        (self.root / "fleet.yaml").write_text(text)

    def start(self, *words, **options):
        command = [self.python, "-m", "fleetform.cli.entry", *words]
        return subprocess.Popen(
            command, cwd=self.root, env=self.variables, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, **options,
        )  # fmt: skip

    def run(self, *words, code=0):
        with self.start(*words) as process:
            output, _ = process.communicate(timeout=300)
        assert code is None or process.returncode == code, output
        return output

    def plan(self):
        return json.loads(self.run("plan", "--format", "json"))


def until(condition, seconds=240):
    """Wait for a condition, and return what it returned."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it has not come true"
        time.sleep(0.2)
    return found


def own_groups(cloud):
    found = cloud.client().describe_security_groups()["SecurityGroups"]
    return [one for one in found if one["GroupName"].startswith("fleetform-")]


def killed_during(site, cloud, call, *, calls=1):
    """Start an apply, and kill its controller once the cloud has answered so many new calls."""
    before = len(cloud.calls(call))
    process = site.start("apply", "-y", "--allow-destroy", start_new_session=True)
    while len(cloud.calls(call)) < before + calls and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    output, _ = process.communicate()
    assert process.returncode == -signal.SIGKILL, output
