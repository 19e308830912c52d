"""An apply that follows one run of one job prints its output as it is written."""

from __future__ import annotations

import os
import pty
import signal
import subprocess

import pytest

from integration.background.background import process_of
from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task

RETRIED = "retry: {on: [error], max_attempts: 2}\n"


def _read_until(stream: int, words: str) -> str:
    """Read until these words came, or the other end is closed."""
    shown = b""
    while words.encode() not in shown:
        try:
            piece = os.read(stream, 65536)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    return shown.decode()


@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "pty"])
def test_output_comes_while_the_job_runs(lab: Lab, terminal: bool) -> None:
    """Between the lines `running` and `done`, whole and without a prefix, before the job has ended."""
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    lab.declare(FLEET, task("hello", "echo 'early line'", wait, "printf 'no newline'"))
    read, write = pty.openpty() if terminal else os.pipe()
    apply = subprocess.Popen(
        ["fleetform", "apply", "-y"],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=subprocess.DEVNULL,
        stdout=write,
        stderr=subprocess.STDOUT,
    )
    os.close(write)
    early = _read_until(read, "\nearly line")
    assert apply.poll() is None
    gate.touch()
    shown = early + _read_until(read, "succeeded.")
    assert apply.wait(PATIENCE_SECONDS) == 0, shown
    os.close(read)
    lines = shown.replace("\r", "").split("\n")
    begin = lines.index("hello: running")
    assert lines[begin + 1 : begin + 3] == ["early line", "no newline"]
    assert "hello: done after" in lines[begin + 3]


def test_a_failed_run_names_each_attempt_and_prints_its_output_once(lab: Lab) -> None:
    """Each attempt has one line, an unfinished last line is kept, and nothing is printed again."""
    lab.declare(FLEET, task("hello", "printf 'a\\nb'", "exit 3", more=RETRIED))
    done = lab.run("apply", "-y")
    assert done.returncode == 4, done.stdout + done.stderr
    assert done.stdout.count("\na\nb\n") == 2
    assert done.stdout.count("hello: attempt 2\n") == 1
    assert "running (attempt 2)" not in done.stdout
    assert "printed last" not in done.stdout


def test_a_rerun_prints_the_output_of_the_new_run(lab: Lab) -> None:
    """What an earlier run of the same name printed is not printed again."""
    lab.declare(FLEET, task("hello", f"echo x >> {lab.folder}/n", f"wc -l < {lab.folder}/n"))
    assert "\n1\n" in lab.run("apply", "-y").stdout
    again = lab.run("rerun", "hello", "--apply", "-y")
    assert again.returncode == 0, again.stdout + again.stderr
    # A short job may have ended before the controller has seen it run.
    assert "\n2\nhello: done" in again.stdout
    assert "\n1\n" not in again.stdout


def test_others_keep_the_progress_display(lab: Lab) -> None:
    """Several runs, --detach, --json-into: no output is printed; --show-output keeps its prefix."""
    lab.declare(FLEET, task("one", "echo said"), task("two", "echo said"))
    assert "said" not in lab.run("apply", "-y").stdout.partition("Plan:")[2]
    for options in (("--detach",), ("--json-into", str(lab.folder / "progress"))):
        done = lab.run("apply", "-y", "--replace", "one", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "\nsaid\n" not in done.stdout
    assert "one | said" in lab.run("apply", "-y", "--replace", "one", "--show-output").stdout


def test_large_output_comes_whole(lab: Lab) -> None:
    """Three megabytes of lines are printed to the last one."""
    lab.declare(FLEET, task("hello", "yes | head -c 3000000", "echo last"))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\ny") == 1_500_000
    assert "\ny\nlast\n" in done.stdout


def test_output_in_a_pipe_obeys_no_program(lab: Lab) -> None:
    """What a job prints gives no command to a terminal or a CI runner that shows the output of apply."""
    lab.declare(FLEET, task("hello", "echo ::stop-commands::x", "printf '\\033[2Jgone\\n'"))
    done = lab.run("apply", "-y")
    assert done.returncode == 0, done.stderr
    shown = done.stdout.partition("Plan:")[2]
    assert "\n\\u003a:stop-commands::x\n\\u001b[2Jgone\n" in shown


def test_ctrl_c_leaves_the_run_to_a_background_controller(lab: Lab) -> None:
    """It ends with 130 as before, while output is being printed."""
    lab.declare(FLEET, task("hello", "while :; do echo more; sleep 0.01; done"))
    apply = lab.start("apply", "-y")
    assert apply.stdout is not None
    _read_until(apply.stdout.fileno(), "more\nmore\n")
    apply.send_signal(signal.SIGINT)
    code, output = lab.finish(apply)
    assert code == 130, output
    assert f"background controller (pid {process_of(lab)}) drives the runs" in output


def test_a_run_that_another_apply_has_submitted_is_printed_and_ends(lab: Lab) -> None:
    """An apply whose plan another apply carries out before it is confirmed follows the run to its end."""
    gate = lab.folder / "gate"
    lab.declare(FLEET, task("hello", f"until [ -e {gate} ]; do sleep 0.05; done", "echo output"))
    terminal, slave = pty.openpty()
    apply = subprocess.Popen(
        ["fleetform", "apply"],
        cwd=lab.tree,
        env=lab.variables(),
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = _read_until(terminal, "[y/N]")
    assert lab.run("apply", "-y", "--detach").returncode == 0
    os.write(terminal, b"y\n")
    shown += _read_until(terminal, "hello")
    gate.touch()
    shown += _read_until(terminal, "succeeded.")
    assert apply.wait(PATIENCE_SECONDS) == 0, shown
    os.close(terminal)
    assert "\noutput\n" in shown.replace("\r", "")
