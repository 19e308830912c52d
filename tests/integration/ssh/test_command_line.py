"""`fleetform exec` and `fleetform ssh` as processes, on hosts of an SSH fleet."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import program
from lab import Lab
from leftovers import end_background, end_manager

PATIENCE_SECONDS = 90.0


class Tree:
    """An environment with a fleet that declares all that a client needs to know."""

    def __init__(self, folder: Path, lab: Lab) -> None:
        self.state = folder / "state"
        self._folder = folder / "tree"
        self._folder.mkdir()
        fleet = {
            "type": "fleet",
            "name": "far",
            "run_as": "root",
            "ssh_config": {
                "user": "root",
                "identity_file": str(lab.identity),
                "host_keys": "first-use",
                "hosts": [lab.hosts["node1"], lab.hosts["node2"]],
            },
        }
        run = {
            "type": "task",
            "name": "train",
            "nodes": 2,
            "fleets": ["far"],
            "commands": ["sleep 98765"],
        }
        environment = {
            "type": "environment",
            "name": "lab",
            "uid": uuid.uuid4().hex,
            "grants": {"root": True},
        }
        for name, document in (("environment", environment), ("fleet", fleet), ("run", run)):
            (self._folder / f"{name}.yaml").write_text(json.dumps(document))

    def run(self, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program(), *arguments],
            cwd=self._folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._folder),
                "FLEETFORM_STATE_HOME": str(self.state),
                "FLEETFORM_CACHE_HOME": "",
            },
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )


@pytest.fixture
def tree(tmp_path: Path, bare: object, hosts: Lab) -> Iterator[Tree]:
    """Its agents and jobs end with the lab."""
    made = Tree(tmp_path, hosts)
    try:
        yield made
    finally:
        end_manager(made.state)
        end_background(made.state)


def test_jobs_and_hosts_are_entered(tree: Tree, hosts: Lab) -> None:
    """Nothing is configured but the fleet; the key of the first use is the one that is accepted."""
    first_host, second_host = hosts.hosts["node1"], hosts.hosts["node2"]
    applied = tree.run("apply", "-y", "--detach")
    assert applied.returncode == 0, applied.stdout + applied.stderr
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "running" not in tree.run("ps", "train").stdout:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert tree.run("controller", "stop").returncode == 0
    script = "hostname; cat; echo $FLEETFORM_NODE_RANK; exit 4"
    first = tree.run("exec", "train", "--", "sh", "-c", script, given="typed\n")
    second = tree.run("exec", "train", "--rank", "1", "--", "sh", "-c", script)
    assert (first.stdout, first.returncode) == ("node1\ntyped\n0\n", 4), first.stderr
    assert (second.stdout, second.stderr, second.returncode) == ("node2\n1\n", "", 4)

    shell = tree.run("ssh", second_host, given="hostname; exit 6\n")
    assert shell.returncode == 6, shell.stderr
    assert shell.stdout.splitlines()[-1] == "node2"
    line = tree.run("ssh", f"far/{first_host}", "--", "hostname; echo $0 | wc -l")
    assert (line.stdout, line.returncode) == ("node1\n1\n", 0), line.stderr
    words = tree.run("ssh", first_host, "--", "printf", "%s\n", "a  b", "c")
    assert words.stdout == "a  b\nc\n"
    hosts.rekey("node1")
    changed = tree.run("ssh", first_host, "--", "true")
    assert changed.returncode == 255
    assert "HOST IDENTIFICATION HAS CHANGED" in changed.stderr
    entered = tree.run("exec", "train", "--", "true")
    assert entered.returncode == 255
    assert "the host key of" in entered.stderr

    for typed, said in (
        ("far-7", "there is no host or run `far-7`"),
        (f"other/{first_host}", f"there is no host or run `other/{first_host}`"),
    ):
        refused = tree.run("ssh", typed)
        assert (refused.returncode, said in refused.stderr) == (1, True), refused.stderr
