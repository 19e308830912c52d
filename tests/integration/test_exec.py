"""`fleetform exec` as a process: with pipes, on a terminal of its own, and where nothing runs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import FLEETFORM, program
from integration.ledger.lab import PATIENCE_SECONDS, Lab, task

FLEET = "type: fleet\nname: local\nnodes: 2\nlocal: {cpu: 8, memory: 16GB}\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A run, an array and a run on two hosts; their controller was killed."""
    lab = Lab(tmp_path_factory.mktemp("exec") / "lab")
    gate = lab.folder / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.1; done"
    small = "resources: {cpu: 1, memory: 64MB}\n"
    lab.declare(
        FLEET,
        task("train", lab.says("train"), wait, more=f"env: {{COLOUR: blue}}\n{small}"),
        task("gang", lab.says("gang"), wait, more=f"nodes: 2\n{small}"),
        task("arr", lab.says("arr"), wait, more=f"array: 0-1\n{small}"),
        task("short", "true", more=small),
        task("late", "true", more=f"depends_on: [train]\n{small}"),
    )
    controller = lab.start("apply", "-y")
    lab.wait_until(lambda: sorted(lab.said()) == ["arr", "arr", "gang", "gang", "train"], "a run")
    lab.wait_until_state("short", "done")
    lab.wait_until_state("gang", "running")
    controller.kill()
    lab.finish(controller)
    yield lab
    gate.touch()
    lab.close()


def entered(lab: Lab, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [program(), "exec", *arguments],
        cwd=lab.tree,
        env=lab.variables(),
        input=given,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_a_command_in_a_job_without_a_controller(lab: Lab) -> None:
    """Its environment and directory are the job's, its streams and its exit code are its own."""
    done = entered(lab, "train", "--", "sh", "-c", "echo $COLOUR; echo no >&2; pwd; exit 7")
    colour, folder = done.stdout.decode().split()
    assert (done.returncode, colour, done.stderr) == (7, "blue", b"no\n")
    assert Path(folder).parent.parent.name == "jobs"
    killed = entered(lab, "train", "--", "sh", "-c", "kill -KILL $$")
    assert (killed.returncode, killed.stdout, killed.stderr) == (137, b"", b"")
    missing = entered(lab, "train", "--", "surely-no-command")
    assert missing.returncode == 127
    assert b"surely-no-command: No such file" in missing.stderr


def test_input_and_output_are_carried_whole(lab: Lab) -> None:
    """As with `tar c | fleetform exec … tar x`: bytes as they are, and an end."""
    content = os.urandom(3_000_000)
    done = entered(lab, "train", "--", "cat", given=content)
    assert (done.returncode, done.stdout == content, done.stderr) == (0, True, b"")
    assert entered(lab, "train", given=b"echo from $COLOUR\n").stdout == b"from blue\n"


def test_ranks_hosts_and_elements(lab: Lab) -> None:
    """One job is chosen; without a choice it is the first rank, which is said."""
    print_rank = ("--", "sh", "-c", "echo $FLEETFORM_NODE_RANK")
    first = entered(lab, "gang", *print_rank)
    assert (first.stdout, first.stderr[:14]) == (b"0\n", b"rank 0 of 2, o")
    assert entered(lab, "gang", "--rank", "1", *print_rank).stdout == b"1\n"
    both = {entered(lab, "gang", "--node", f"local-{n}", *print_rank).stdout for n in (0, 1)}
    assert both == {b"0\n", b"1\n"}
    element = entered(lab, "arr[1]", "--", "sh", "-c", "echo $FLEETFORM_ARRAY_INDEX")
    assert element.stdout == b"1\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("arr", "--", "true"), "means 2 runs, and a command runs in one\nhelp: name one that is running: `arr[0]`, `arr[1]`"),
        (("short", "--", "true"), "`short` is not running: it is done\nhelp: `fleetform logs short` prints its output"),
        (("late", "--", "true"), "`late` is not running yet: it is pending\nhelp: `fleetform why late`"),
        (("gang", "--rank", "2", "--", "true"), "there is no rank 2\nhelp: the ranks are 0 to 1"),
        (("train", "--node", "far", "--", "true"), "`train` does not run on host `far`\nhelp: it runs on `local-"),
        (("trian", "--", "true"), "there is no run `trian`"),
        (("train", "--rank", "0", "--node", "local-0"), "--rank and --node exclude each other"),
    ],
)  # fmt: skip
def test_what_cannot_be_entered(lab: Lab, arguments: tuple[str, ...], said: str) -> None:
    """Each error says what to do instead."""
    done = entered(lab, *arguments)
    assert done.returncode == 1
    assert said in done.stderr.decode()


def test_signals_are_passed_on(lab: Lab) -> None:
    """Without a terminal, SIGTERM of this process is one of the command."""
    script = "trap 'echo stopped; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    child = subprocess.Popen(
        [FLEETFORM, "exec", "train", "--", "sh", "-c", script],
        cwd=lab.tree, env=lab.variables(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    output, _ = child.communicate(timeout=PATIENCE_SECONDS)
    assert (child.returncode, output) == (3, b"stopped\n")


class Terminal:
    """`fleetform exec` on a terminal of its own."""

    def __init__(self, lab: Lab, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.resize(20, 70)
        self.modes = termios.tcgetattr(slave)
        self._slave = slave
        self.shown = b""
        self.process = subprocess.Popen(
            [FLEETFORM, "exec", *arguments], cwd=lab.tree,
            env={**lab.variables(), "TERM": "vt220"},
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        )  # fmt: skip

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def until(self, pattern: bytes) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(pattern, self.shown):
            assert time.monotonic() < deadline, self.shown
            if select.select([self.master], [], [], 1)[0]:
                self.shown += os.read(self.master, 4096)

    def end(self) -> int:
        try:
            code = self.process.wait(PATIENCE_SECONDS)
            assert termios.tcgetattr(self._slave) == self.modes
            return code
        finally:
            self.close()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for descriptor in (self.master, self._slave):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def test_a_shell_on_a_terminal(lab: Lab) -> None:
    """Keys, size and Ctrl-C are the command's; afterwards the terminal is as it was."""
    terminal = Terminal(lab, "train")
    try:
        terminal.type(b"echo $TERM $((40 + 2)); stty size\n")
        terminal.until(rb"vt220 42\r\n20 70\r\n")
        terminal.resize(33, 99)
        os.killpg(terminal.process.pid, signal.SIGWINCH)
        time.sleep(0.5)
        terminal.type(b"stty size\n")
        terminal.until(rb"33 99\r\n")
        terminal.type(b"sleep 301; echo over=$?\n")
        time.sleep(0.5)
        terminal.type(b"\x03")
        terminal.until(rb"\^C")
        terminal.type(b"exit 5\n")
        terminal.until(rb"exit 5")
        assert terminal.end() == 5
    finally:
        terminal.close()


def test_a_command_that_is_left_ends(lab: Lab) -> None:
    """When this process is killed, the command gets SIGHUP."""
    mark = lab.folder / "left"
    script = (
        f"trap 'touch {shlex.quote(str(mark))}; exit' HUP; echo ready; while :; do sleep 0.05; done"
    )
    child = subprocess.Popen(
        [FLEETFORM, "exec", "train", "--", "sh", "-c", script],
        cwd=lab.tree, env=lab.variables(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.communicate()
    lab.wait_until(mark.exists, "the end of the command")
