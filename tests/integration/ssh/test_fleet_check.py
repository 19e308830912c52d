"""`fleet check` on a sound host, and on one that is broken in several ways."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from forkserver import program
from lab import Lab

FLEET = """\
type: fleet
name: lab
run_as: root
ssh_config:
  user: root
  hosts:
    - node1
    - {{hostname: node2, port: 2222}}
    - {{hostname: {address}, identity_file: {identity}}}
---
type: fleet
name: plain
ssh_config:
  hosts: [{{hostname: node2, user: lab}}]
"""


@pytest.fixture
def check(home: Path, hosts: Lab, tmp_path: Path):
    """Run the command on a fleet of both hosts; returns the exit code, the output and the errors."""
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "environment.yaml").write_text(f"type: environment\nname: lab\nuid: {'c' * 32}\n")
    address = hosts.hosts["node1"]
    (tree / "fleet.yaml").write_text(FLEET.format(address=address, identity=hosts.identity))
    variables = {name: str(tmp_path / name) for name in ("STATE", "CONFIG", "CACHE")}
    environ = {
        **os.environ,
        **{f"FLEETFORM_{name}_HOME": path for name, path in variables.items()},
    }

    def run(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [program(), "fleet", "check", "-C", str(tree), *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    return run


def found(output: str) -> dict[str, dict[str, tuple[str, str, str]]]:
    """By host and topic: severity, text and advice."""
    return {
        host["host"]: {
            one["topic"]: (one["severity"], one["text"], one["advice"]) for one in host["findings"]
        }
        for host in json.loads(output)["hosts"]
    }


def test_each_host_says_what_is_missing(check, hosts: Lab) -> None:
    """A closed port and an unknown key keep a fleet from working, and the others are described."""
    code, output, errors = check("--json")
    assert (code, errors) == (1, "checking 4 hosts\n")
    result = json.loads(output)
    assert (result["ok"] + result["warning"], result["error"]) == (2, 2)
    by_host = found(output)
    assert all(severity != "error" for severity, _, _ in by_host["node1"].values())
    assert by_host["node1"]["account"][1] == "root"
    assert by_host["node1"]["jobs"][1] == "run as root"
    assert by_host["node2"]["account"][1].startswith("lab, ")
    assert by_host["node2"]["jobs"][1].startswith("run as lab for every person")
    assert by_host["node2"]["memory limit"][0] == "warning"
    severity, text, advice = by_host["node2:2222"]["connection"]
    assert (severity, "port 2222" in text, "ssh -v -p 2222 " in advice) == ("error", True, True)
    severity, text, advice = by_host[hosts.hosts["node1"]]["connection"]
    assert (severity, "host key" in text, "ssh-keyscan" in advice) == ("error", True, True)


@pytest.mark.parametrize(
    ("options", "text"),
    [("bind,noexec", "mounted noexec"), ("bind,ro", "read-only file system")],
)
def test_a_home_where_no_job_could_run(check, hosts: Lab, options: str, text: str) -> None:
    """The finding names the mount and how to correct it."""
    hosts.run("node2", "mount", "-o", f"remount,{options}", "/home")
    try:
        _, output, _ = check("--json")
        severity, found_text, advice = found(output)["node2"]["home"]
        assert (severity, text in found_text, "remount /home" in advice) == ("error", True, True)
    finally:
        hosts.run("node2", "mount", "-o", "remount,bind,rw,exec", "/home")


def test_an_account_that_runs_no_commands(check, hosts: Lab) -> None:
    """The block says so in words, with the command that corrects it."""
    hosts.run("node2", "usermod", "--shell", "/usr/sbin/nologin", "lab")
    try:
        code, output, _ = check()
        assert code == 1
        block = output[output.index("node2  fleet plain") :].split("\n\n")[0]
        assert "error    connection" in block
        assert "runs no commands" in block
        assert "chsh" in block
        assert output.splitlines()[-1].startswith("4 hosts: ")
    finally:
        hosts.run("node2", "usermod", "--shell", "/bin/sh", "lab")


def test_an_unknown_fleet_is_refused(check) -> None:
    """Only declared fleets are checked."""
    code, _, errors = check("labs")
    assert code == 1
    assert "did you mean `lab`?" in errors
