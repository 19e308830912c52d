"""What commands inside a run say while its host does not answer, and how they end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from integration.ledger.lab import FLEETFORM
from integration.ssh.environment import Environment
from integration.ssh.test_faults import kill_agent
from lab import Lab

pytestmark = pytest.mark.waits

SILENT = "host node1 does not answer; trying again\n"


def started(environment: Environment, *command: str) -> tuple[subprocess.Popen[str], Path]:
    """Start a command; returns it with the file of its standard error."""
    errors = environment.folder / f"{command[0]}.errors"
    with errors.open("w") as file:
        child = subprocess.Popen(
            [FLEETFORM, *command], cwd=environment.tree, env=environment.variables(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file,
        )  # fmt: skip
    environment._children.append(child)
    return child, errors


def test_a_host_that_falls_silent(environment: Environment, hosts: Lab) -> None:
    """`exec` and `attach` say that it does not answer and that it answers again; both go on."""
    environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_until_state("one", "running")
    entered, entered_errors = started(environment, "exec", "one", "--", "cat")
    assert entered.stdin is not None
    assert entered.stdout is not None
    entered.stdin.write("before\n")
    entered.stdin.flush()
    assert entered.stdout.readline() == "before\n"
    attached, attached_errors = started(environment, "attach", "one")
    assert attached.stdout is not None
    assert attached.stdout.readline() == "line 1\n"
    hosts.cut("node1")
    try:
        for errors in (entered_errors, attached_errors):
            environment.wait_until(lambda errors=errors: SILENT in errors.read_text(), "the notice")
    finally:
        hosts.join("node1")
    for errors in (entered_errors, attached_errors):
        environment.wait_until(
            lambda errors=errors: "host node1 answers again\n" in errors.read_text(), "an answer"
        )
    assert entered.communicate("after\n")[0] == "after\n"
    assert entered.returncode == 0
    environment.open_gate("one")
    attached.communicate()
    assert attached.returncode == 0


def test_the_code_of_a_host_that_does_not_answer(environment: Environment, hosts: Lab) -> None:
    """`exec` ends with 255, whether it finds out itself or the controller has before."""
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_until_state("one", "running")
    serve.terminate()
    environment.finish(serve)
    hosts.cut("node1")
    try:
        first = environment.control("exec", "one", "--", "true")
        code, said = environment.finish(first)
        assert code == 255, said
        assert SILENT in said
        serve = environment.control("serve")
        environment.wait_until_state("one", "unknown")
        code, said = environment.finish(environment.control("exec", "one", "--", "true"))
        assert code == 255, said
        assert SILENT in said
    finally:
        hosts.join("node1")
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")


def test_an_agent_that_is_started_again(environment: Environment) -> None:
    """`exec` that finds no agent tries again, and its command runs once."""
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_until_state("one", "running")
    kill_agent(environment, "node1")
    entered = environment.run(
        "exec", "one", "--", "sh", "-c", "echo once >> ../again; cat ../again"
    )
    assert entered.returncode == 0, entered.stderr
    assert entered.stdout == "once\n"
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
