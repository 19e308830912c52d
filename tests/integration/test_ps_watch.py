"""`fleetform ps --watch` as a process: on a terminal of its own, and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

import applied
from leftovers import end_agents

PATIENCE_SECONDS = 120
PROGRAM = [
    sys.executable,
    "-c",
    "import sys; from fleetform.cli.main import main; sys.exit(main())",
    "ps",
    "--watch",
]
ARRAY = "type: task\nname: arr\narray: 1-1000\ncommands: [echo]\nresources: {cpu: 1}\n"
OTHERS = [f"type: task\nname: other-{n}\ncommands: [echo]\n" for n in range(40)]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
HOME = "\x1b[H"
ENTER = "\x1b[?1049h"
LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"


@pytest.fixture
def lab(tmp_path, monkeypatch):
    """An array of a thousand elements and forty tasks; nothing runs yet."""
    monkeypatch.setenv("FLEETFORM_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("FLEETFORM_CONFIG_HOME", str(tmp_path / "config"))
    root = applied.write_tree(tmp_path / "lab", applied.FLEET, ARRAY, *OTHERS)
    applied.enter(root)
    yield root
    end_agents(tmp_path / "state")


class Terminal:
    """A watch on a terminal of its own; the test keeps the terminal's other end open."""

    def __init__(self, root, *arguments, lines, columns, program=PROGRAM):
        self.master, self.slave = pty.openpty()
        self.resize(lines, columns)
        self.modes = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen(
            [*program, *arguments], cwd=root, env={**os.environ, "TERM": "xterm"},
            stdin=self.slave, stdout=self.slave, stderr=self.slave,
            # As a shell starts it: nothing stops a process of a session of its own.
            process_group=0,
        )  # fmt: skip
        self.shown = ""

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)

    def resize(self, lines, columns):
        termios.tcsetwinsize(self.slave, (lines, columns))

    def frames(self):
        """The frames that are complete: another one has begun since."""
        frames = self.shown.split(HOME)[1:-1]
        return [[ESCAPE.sub("", line).rstrip("\r") for line in one.rstrip("\x1b[J\r\n").split("\n")]
                for one in frames]  # fmt: skip

    def wait_until(self, is_so):
        until = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < until, self.shown[-4000:]
            self._read(0.1)

    def end(self):
        """Wait for its end; returns the exit code and whether the terminal is as it was."""
        while self.process.poll() is None:
            self._read(0.1)
        return self.process.returncode, self.is_as_before()

    def is_as_before(self):
        """Whether screen, cursor and modes are those of the shell; while the process writes nothing."""
        while self._read(0.1):
            pass
        last = self.shown.rindex(LEAVE)
        is_left = not re.search(r"\x1b\[\?(25l|7l|1049h)", self.shown[last:])
        return is_left and termios.tcgetattr(self.slave) == self.modes

    def is_stopped(self):
        return self._state() == "T"

    def _state(self):
        status = Path(f"/proc/{self.process.pid}/stat").read_text()
        return status.rpartition(")")[2].split()[0]

    def _read(self, seconds):
        poll = select.poll()
        poll.register(self.master, select.POLLIN)
        if not poll.poll(seconds * 1000):
            return False
        self.shown += os.read(self.master, 65536).decode(errors="replace")
        return True


def test_a_terminal_is_redrawn_within_its_size(lab):
    """Frames fit the terminal before and after a resize, count what does not fit, and q ends them."""
    with Terminal(lab, lines=12, columns=70) as terminal:
        terminal.wait_until(lambda: len(terminal.frames()) >= 2)
        frame = terminal.frames()[-1]
        assert len(frame) == 12
        assert "1040 runs: 1040 submitted" in frame[0]
        assert frame[1].startswith("no controller is running")
        assert frame[3].startswith("arr ")
        assert frame[-1] == "and 33 more lines"
        applied.run_all(lab, exit_codes={"arr[2]": 3})
        terminal.wait_until(lambda: any("1 failed" in one[0] for one in terminal.frames()))
        assert any("arr[2]" in line for line in terminal.frames()[-1])
        assert all(len(one) <= 12 and max(map(len, one)) <= 70 for one in terminal.frames())
        terminal.resize(6, 50)
        terminal.wait_until(lambda: len(terminal.frames()[-1]) == 6)
        frame = terminal.frames()[-1]
        assert max(map(len, frame)) <= 50
        assert frame[-1].endswith("more lines")
        os.write(terminal.master, b"q")
        assert terminal.end() == (0, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_restores_the_terminal(lab, number):
    """Ctrl-C, `kill` and a closed session end it with 130, with the cursor and the modes as before."""
    with Terminal(lab, "arr", lines=12, columns=70) as terminal:
        terminal.wait_until(lambda: len(terminal.frames()) >= 1)
        terminal.process.send_signal(number)
        assert terminal.end() == (130, True)


def test_a_stopped_watch_gives_the_terminal_back(lab):
    """Ctrl-Z restores the terminal, and the watch redraws when it continues."""
    with Terminal(lab, lines=12, columns=70) as terminal:
        terminal.wait_until(lambda: len(terminal.frames()) >= 1)
        terminal.process.send_signal(signal.SIGTSTP)
        terminal.wait_until(terminal.is_stopped)
        assert terminal.is_as_before()
        terminal.process.send_signal(signal.SIGCONT)
        seen = len(terminal.frames())
        terminal.wait_until(lambda: len(terminal.frames()) > seen + 1)
        os.write(terminal.master, b"q")
        assert terminal.end() == (0, True)


# It gets SIGTSTP while standard output writes the first piece that has a sequence.
STOPPED_WITHIN = """
import io, os, signal, sys
class Raw(io.FileIO):
    is_stopped = False
    def write(self, data):
        if not self.is_stopped and sys.argv[1].encode() in bytes(data):
            self.is_stopped = True
            os.kill(os.getpid(), signal.SIGTSTP)
        return super().write(data)
sys.stdout = io.TextIOWrapper(io.BufferedWriter(Raw(1, "w", closefd=False)), "utf-8")
from fleetform.cli.main import main
sys.exit(main(["ps", "--watch"]))
"""


@pytest.mark.parametrize("sequence", [ENTER, HOME], ids=["enter", "frame"])
def test_a_watch_stops_between_two_frames(lab, sequence):
    """Ctrl-Z within a frame waits for its end, and then gives the terminal back as usual."""
    program = [sys.executable, "-c", STOPPED_WITHIN, sequence]
    with Terminal(lab, lines=12, columns=70, program=program) as terminal:
        terminal.wait_until(terminal.is_stopped)
        assert terminal.is_as_before()
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_until(lambda: len(terminal.frames()) >= 3)
        os.write(terminal.master, b"q")
        assert terminal.end() == (0, True)


def test_a_watch_that_ends_is_not_stopped(lab):
    """Ctrl-Z while the terminal is restored changes nothing: the watch ends."""
    program = [sys.executable, "-c", STOPPED_WITHIN, LEAVE]
    with Terminal(lab, lines=12, columns=70, program=program) as terminal:
        terminal.wait_until(lambda: len(terminal.frames()) >= 1)
        os.write(terminal.master, b"q")
        assert terminal.end() == (0, True)


def test_a_name_that_means_no_run_is_refused_before_the_screen_is_taken(lab):
    """The error stays on the terminal: it is the same as without --watch."""
    with Terminal(lab, "ar", lines=12, columns=70) as terminal:
        terminal.wait_until(
            lambda: terminal.process.poll() is not None and "error:" in terminal.shown
        )
        assert terminal.process.returncode == 1
        assert "there is no run `ar`" in terminal.shown
        assert "\x1b[?1049h" not in terminal.shown


@pytest.fixture
def pipe(lab):
    """Starts a watch in a pipe and waits until it watches; returns the process."""
    started = []

    def start(*arguments):
        process = subprocess.Popen(
            [*PROGRAM, *arguments], cwd=lab, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stderr.readline().startswith("watching ")
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_a_pipe_gets_a_line_for_each_change(lab, pipe):
    """A line names the time, the run and both states; elements that did not change have none."""
    watch = pipe("arr")
    applied.place_all(lab)
    lines = [watch.stdout.readline() for _ in range(4)]
    assert [re.sub(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ ", "", line) for line in lines] == [
        f"arr[{n}] submitted → preparing\n" for n in range(1, 5)
    ]
    # Placing held the manager lease for a moment: a look at that moment sees a controller.
    assert "no controller is running" in watch.stderr.readline()
    watch.send_signal(signal.SIGINT)
    out, _ = watch.communicate(timeout=PATIENCE_SECONDS)
    assert (watch.returncode, out) == (130, "")


def test_names_and_states_filter_json_lines(lab, pipe):
    """With --state only changes to and from these states are printed; each line is one object."""
    watch = pipe("arr[1-3]", "--state", "failed", "--format", "json")
    applied.run_all(lab, exit_codes={"arr[2]": 3, "arr[4]": 3})
    change = json.loads(watch.stdout.readline())
    assert (change["name"], change["state"]) == ("arr[2]", "failed")
    # The state of whichever look came last before the end.
    assert change["previous_state"] in {"submitted", "preparing", "running", "finishing"}
    watch.send_signal(signal.SIGINT)
    assert watch.communicate(timeout=PATIENCE_SECONDS)[0] == ""
    assert watch.returncode == 130
