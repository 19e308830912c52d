"""An apply that is ended by a signal leaves a background controller, whatever the signal is."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys

import pytest

from integration.background.background import process_of
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task, wait_until


@pytest.fixture
def gate(lab: Lab) -> str:
    """Declare a run that begins and waits for a file, and its dependent; returns the file's path."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(
        FLEET,
        task("first", lab.says("begun"), wait, lab.says("one")),
        task("second", lab.says("two"), more="depends_on: [first]\n"),
    )
    return str(gate)


def _ends_well(lab: Lab, gate: str) -> None:
    """See that the runs are driven to their ends by the background controller."""
    process_of(lab)
    assert "no controller" not in lab.run("ps").stderr
    os.close(os.open(gate, os.O_CREAT, 0o600))
    wait_until(lambda: set(lab.states().values()) == {"done"}, lambda: str(lab.states()))
    assert lab.said() == ["begun", "one", "two"]


def test_sigterm_of_a_background_job_of_a_script(lab: Lab, gate: str) -> None:
    """A shell without job control has SIGINT ignored for `&`: SIGTERM ends the apply all the same."""
    script = (
        f"fleetform apply -y & until [ -s {lab.witness} ]; do sleep 0.05; done;"
        " kill -TERM $!; wait $!; echo code $?"
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "code 130" in done.stdout, done.stdout + done.stderr
    _ends_well(lab, gate)


def test_sigterm_of_a_submit_in_the_background_of_a_script(lab: Lab) -> None:
    """As of an apply: SIGINT is ignored, SIGTERM ends it with 130, and a controller drives the run."""
    lab.declare(FLEET)
    assert lab.run("apply", "-y").returncode == 0
    gate = lab.folder / "gate"
    (lab.folder / "job.sh").write_text(
        f"{lab.says('begun')}\nuntil [ -e {gate} ]; do sleep 0.05; done\n{lab.says('ended')}\n"
    )
    script = (
        f"fleetform submit {lab.folder}/job.sh -n job & until [ -s {lab.witness} ]; do sleep 0.05; done;"
        " kill -INT $!; kill -TERM $!; wait $!; echo code $?"
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert "code 130" in done.stdout, done.stdout + done.stderr
    assert "job continues\n" in done.stderr
    assert f"the background controller (pid {process_of(lab)}) drives the runs" in done.stderr
    gate.touch()
    wait_until(lambda: lab.states() == {"job": "done"}, lambda: str(lab.states()))
    assert lab.said() == ["begun", "ended"]


def test_ctrl_c_says_what_goes_on_and_how_it_is_ended(lab: Lab, gate: str) -> None:
    """It ends with 130, names the controller and its log, and how to follow and to stop."""
    apply = lab.start("apply", "-y")
    lab.wait_until_said("begun")
    apply.send_signal(signal.SIGINT)
    code, output = lab.finish(apply)
    assert code == 130, output
    assert "Traceback" not in output
    for words in (
        f"background controller (pid {process_of(lab)}) drives the runs",
        str(lab.environment / "background.log"),
        "`fleetform logs RUN -f`",
        "`fleetform stop RUN --apply`",
        "`fleetform controller stop`",
    ):
        assert words in output
    _ends_well(lab, gate)


def _close_terminal_of(lab: Lab, command: str) -> None:
    """Type a command in a terminal, close that once a job has begun, and await the controller."""
    terminal, shell = pty.openpty()
    typed = subprocess.Popen(
        ["setsid", "--ctty", "bash", "-c", f"fleetform {command}; true"],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=shell,
        stdout=shell,
        stderr=shell,
    )
    os.close(shell)
    lab.wait_until_said("begun")
    os.close(terminal)
    typed.wait(PATIENCE_SECONDS)
    wait_until(
        lambda: lab.run("controller", "show").stdout.startswith("background controller"),
        lambda: lab.run("controller", "show").stdout,
    )


def test_a_terminal_is_closed_while_apply_waits(lab: Lab, gate: str) -> None:
    """The kernel sends SIGHUP, and nothing can be printed any more."""
    _close_terminal_of(lab, "apply -y")
    _ends_well(lab, gate)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_serve_leaves_one_where_work_is_left(lab: Lab, gate: str, number: signal.Signals) -> None:
    """Ctrl-C and a closed terminal end serve and not the runs; it says what goes on, and how it is ended."""
    serve = lab.start("serve")
    lab.wait_until_said("begun")
    serve.send_signal(number)
    code, output = lab.finish(serve)
    assert (code, output.count("Traceback")) == (0, 0), output
    assert f"background controller (pid {process_of(lab)}) drives the runs" in output
    assert "`fleetform stop RUN --apply` ends a run" in output
    _ends_well(lab, gate)


def test_serve_in_a_terminal_that_is_closed_leaves_one(lab: Lab, gate: str) -> None:
    """The kernel sends SIGHUP, and nothing can be printed any more."""
    _close_terminal_of(lab, "serve")
    _ends_well(lab, gate)


def test_a_service_that_is_stopped_leaves_none(lab: Lab, gate: str) -> None:
    """SIGTERM ends serve; the runs that are not driven are counted, also in an event."""
    serve = lab.start("serve")
    lab.wait_until_said("begun")
    serve.send_signal(signal.SIGTERM)
    code, output = lab.finish(serve)
    assert code == 0, output
    assert (
        "2 runs are not over, and are not driven until `fleetform serve` or `fleetform apply` runs again"
        in output
    )
    assert lab.run("controller", "show", "--json").stdout.strip() == "null"
    assert "no controller drives the runs any more" in lab.run("events").stdout
    os.close(os.open(gate, os.O_CREAT, 0o600))
    assert lab.run("apply", "-y").returncode == 0
    assert lab.said() == ["begun", "one", "two"]


STUBBORN = """
import asyncio, sys
from fleetform.cli.interrupts import Interrupts
async def stubborn():
    print("begun", flush=True)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            print("asked", flush=True)
with Interrupts() as interrupts:
    interrupts.run(stubborn())
"""


def test_a_second_ctrl_c_ends_at_once() -> None:
    """Also where what was asked to end does not; other signals that are repeated mean nothing more."""
    with subprocess.Popen(
        [sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        child.send_signal(signal.SIGHUP)
        assert child.stdout.readline() == "asked\n"
        child.send_signal(signal.SIGHUP)
        child.send_signal(signal.SIGTERM)
        child.send_signal(signal.SIGINT)
        assert child.wait(PATIENCE_SECONDS) == 130
