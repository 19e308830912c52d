"""`fleetform shell` on a terminal: a run that waits for it, and ends with it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.ledger.lab import FLEETFORM, Lab, task
from integration.terminal import Terminal

FLEET = "type: fleet\nname: local\nlocal: {cpu: 4, memory: 16GB}\n"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    made = Lab(tmp_path / "lab")
    made.declare(FLEET)
    assert made.run("apply", "-y").returncode == 0
    yield made
    (made.folder / "gate").touch()
    made.run("controller", "stop")
    made.close()


def opened(lab: Lab, *options: str) -> Terminal:
    # A shell without the start-up files of this machine.
    variables = {**lab.variables(), "HOME": str(lab.folder)}
    return Terminal([FLEETFORM, "shell", *options], lab.tree, variables)


def test_a_shell_ends_its_run(lab: Lab) -> None:
    """It has what it asked for, its exit code is passed on, and the run is done with it."""
    terminal = opened(lab, "--cpus", "2", "--memory", "1GB", "--fleet", "local", "--time", "10m")
    try:
        terminal.until(rb"shell: on local-0; `exit` ends the shell")
        terminal.type(b"echo $((40 + 2)) $FLEETFORM_RUN_NAME; tty; ls -A | wc -l\n")
        terminal.until(rb"42 shell\r\n/dev/pts/\d+\r\n0\r\n")
        (row,) = lab.json("ps")
        assert (row["name"], row["state"]) == ("shell", "running")
        terminal.type(b"exit 5\n")
        assert terminal.end() == 5
        assert b"shell: done" in terminal.shown
    finally:
        terminal.close()
    assert lab.states() == {"shell": "done"}


def test_a_lost_terminal_ends_its_run(lab: Lab) -> None:
    """Also where the program is killed that showed it; with --keep the run goes on."""
    terminal = opened(lab)
    try:
        terminal.until(rb"shell: on local-0")
        terminal.type(b"echo $((40 + 2))\n")
        terminal.until(rb"42\r\n")
        _kill(terminal)
    finally:
        terminal.close()
    lab.wait_until_state("shell", "done")
    kept = opened(lab, "--keep", "--time", "5m", "-n", "kept")
    try:
        kept.until(rb"kept: on local-0")
        kept.type(b"sleep 4321 & echo $((40 + 2))\n")
        kept.until(rb"42\r\n")
        kept.type(b"exit\n")
        assert kept.end() == 0
        assert b"kept continues" in kept.shown
    finally:
        kept.close()
    assert lab.states()["kept"] == "running"
    assert lab.run("exec", "kept", "--", "true").returncode == 0
    stopped = lab.run("stop", "kept")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    lab.wait_until_state("kept", "stopped")


def test_a_shell_does_not_come_back_after_a_destroy(lab: Lab) -> None:
    """Its terminal has ended; a task that had not finished runs again."""
    lab.declare(FLEET, task("waits", f"until [ -e {lab.folder / 'gate'} ]; do sleep 0.1; done"))
    assert lab.run("apply", "-y", "--detach").returncode == 0
    terminal = opened(lab, "--cpus", "1")
    kept = opened(lab, "--cpus", "1", "--keep", "--time", "5m", "-n", "kept")
    try:
        terminal.until(rb"shell: on local-0")
        kept.until(rb"kept: on local-0")
        done = lab.run("destroy", "-y", "--allow-destroy")
        assert done.returncode == 0, done.stdout + done.stderr
    finally:
        terminal.close()
        kept.close()
    again = lab.run("apply", "-y", "--detach")
    assert again.returncode == 0, again.stdout + again.stderr
    assert [row["name"] for row in lab.json("ps")] == ["waits"]


def _kill(terminal: Terminal) -> None:
    """Kill the command itself, which is a child of the program that opened its session."""
    children = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children")
    for pid in children.read_text().split() or [str(terminal.process.pid)]:
        os.kill(int(pid), signal.SIGKILL)


def test_a_shell_that_waits(lab: Lab) -> None:
    """The reason is shown, and Ctrl-C stops the run before it begins."""
    gate = lab.folder / "gate"
    full = task("full", f"until [ -e {gate} ]; do sleep 0.1; done", more="resources: {cpu: 4, memory: 1GB}\n")  # fmt: skip
    lab.declare(FLEET, full)
    controller = lab.start("apply", "-y")
    lab.wait_until_state("full", "running")
    terminal = opened(lab, "--cpus", "2", "--memory", "1GB")
    try:
        terminal.until(rb"shell waits: ")
        terminal.type(b"\x03")
        assert terminal.end() == 130
    finally:
        terminal.close()
    lab.wait_until_state("shell", "stopped")
    gate.touch()
    lab.finish(controller)


def test_what_is_no_shell(lab: Lab) -> None:
    """Without a terminal, with a wrong time, and with more than any host has."""
    done = lab.run("shell")
    assert (done.returncode, "are no terminal" in done.stderr) == (1, True)
    for options, said in (
        (("--time", "soon"), rb"--time soon: "),
        (("--gpu", "H100:8"), rb"(?s)error: .*H100|unschedulable"),
    ):
        terminal = opened(lab, *options)
        try:
            terminal.until(said)
            assert terminal.end() in {1, 3, 4}
        finally:
            terminal.close()
