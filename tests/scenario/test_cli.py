"""
The command line as people use it: real agents, real jobs, and a terminal where one is needed.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from forkserver import FLEETFORM, program
from leftovers import end_agents

SHORT = "type: task\nname: short\ncommands: [echo hello]\n"
BAD = "type: task\nname: bad\ncommands: [echo about to fail, exit 7]\n"
FLEET = "type: fleet\nname: local\nnodes: 1\nlocal: {cpu: 4, memory: 4GB}\n"


PATIENCE_SECONDS = 60.0
"""For what takes a second: on a machine that does much else, a program takes ten to start."""


class Lab:
    """An environment of one test, and the shell that it is used from."""

    def __init__(self, folder):
        self.root = folder / "lab"
        self.state = folder / "state"
        self._terminals: list[Terminal] = []
        self._gate = folder / "gate"
        self.env = {
            **{name: value for name, value in os.environ.items() if name != "NO_COLOR"},
            "FLEETFORM_STATE_HOME": str(self.state),
            "TERM": "xterm",
        }
        self.run("init", "--name", "lab", str(self.root), cwd=folder)
        for example in ("fleets/local.yaml", "tasks/hello.yaml"):
            (self.root / example).unlink()
        self.write(FLEET)

    @property
    def long(self):
        """A run that begins, and goes on until `let_end`."""
        wait = f"until [ -e {self._gate} ]; do sleep 0.05; done"
        return f"type: task\nname: long\ncommands: [echo begins, '{wait}', echo ends]\n"

    def let_end(self):
        self._gate.touch()

    def write(self, *documents):
        (self.root / "tree.yaml").write_text("---\n".join(documents), encoding="utf-8")

    def run(self, *arguments, cwd=None):
        return subprocess.run(
            [program(), *arguments], cwd=cwd or self.root, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=2 * PATIENCE_SECONDS, check=False,
        )  # fmt: skip

    def rows(self):
        listed = self.run("ps", "--json")
        # Before the first apply there is nothing to list.
        return {row["name"]: row for row in json.loads(listed.stdout or "[]")}

    def await_state(self, name, state):
        until = time.monotonic() + PATIENCE_SECONDS
        while self.rows().get(name, {}).get("state") != state:
            assert time.monotonic() < until, self.rows()
            time.sleep(0.3)

    def terminal(self, *arguments):
        terminal = Terminal([FLEETFORM, *arguments], self.root, self.env)
        self._terminals.append(terminal)
        return terminal

    def close(self):
        """End all that came of this lab, however its test went."""
        for terminal in self._terminals:
            terminal.close()
        end_agents(self.state)


class Terminal:
    """A program on a terminal of its own; what it writes is collected."""

    def __init__(self, argv, cwd, env):
        master, slave = pty.openpty()
        self.process = subprocess.Popen(
            argv, cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self._master = master
        # Not `select`, which takes no descriptor above 1023: a test may have as many.
        self._poll = select.poll()
        self._poll.register(master, select.POLLIN)
        self.shown = ""

    def await_text(self, text, seconds=PATIENCE_SECONDS):
        until = time.monotonic() + seconds
        while text not in self.shown:
            assert time.monotonic() < until, self.shown
            if not self._read(0.1):
                assert text in self.shown, self.shown
                return

    def type(self, text):
        os.write(self._master, text.encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def end(self, seconds=PATIENCE_SECONDS):
        """Wait for the program; returns its exit code."""
        until = time.monotonic() + seconds
        while self._read(0.1):
            assert time.monotonic() < until, self.shown
        return self.process.wait(timeout=PATIENCE_SECONDS)

    def close(self):
        """End the program, if it goes on, and take its terminal away."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)

    def _read(self, seconds):
        if not self._poll.poll(seconds * 1000):
            return True
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says EIO when the last one on the terminal has left.
            return False
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    try:
        yield lab
        # Whatever the test has left running ends with it.
        gone = lab.run("destroy", "-y", "--allow-destroy")
        assert gone.returncode in {0, 4}, gone.stderr
    finally:
        lab.close()


def test_from_nothing_to_a_result_and_back(lab):
    """Plan, apply, read the output; a second plan is empty; destroy leaves nothing."""
    lab.write(FLEET, SHORT)
    assert lab.run("plan", "--detailed-exitcode").returncode == 2
    applied = lab.run("apply", "-y")
    assert applied.returncode == 0, applied.stderr
    assert "Done: 1 run succeeded." in applied.stdout
    assert lab.run("logs", "short").stdout == "hello\n"
    assert lab.run("plan", "--detailed-exitcode").returncode == 0
    assert [agent["alive"] for agent in json.loads(lab.run("agent", "list", "--json").stdout)] == [
        True
    ]
    gone = lab.run("destroy", "-y", "--allow-destroy")
    assert gone.returncode == 0, gone.stderr
    assert json.loads(lab.run("agent", "list", "--json").stdout) == []


def test_a_run_that_fails_is_shown_and_stays_visible(lab, tmp_path):
    """Its last lines stand in the summary, and no later apply runs it again; each of them names it."""
    lab.write(FLEET, BAD)
    applied = lab.run("apply", "-y", "--json-into", str(tmp_path / "progress"))
    assert applied.returncode == 4
    assert "bad printed last:\n  about to fail\n" in applied.stdout
    assert "see `fleetform logs bad`" in applied.stdout
    records = [json.loads(line) for line in (tmp_path / "progress").read_text().splitlines()]
    assert {"run", "step", "result"} <= {record["type"] for record in records}
    assert (records[-1]["state"], records[-1]["exit_code"]) == ("done", 4)
    later = lab.run("apply", "-y")
    assert (later.returncode, later.stderr) == (0, "")
    assert "1 run failed earlier" in later.stdout
    assert "exit code 7" in lab.run("why", "bad").stdout


def test_elements_start_in_the_order_in_which_people_count(lab, tmp_path):
    """On one CPU the second element of an array runs before the tenth; parameters count alike."""
    order = tmp_path / "order"

    def noting(text):
        return f"commands: ['echo {text} >> {order}']\nresources: {{cpu: 1}}\n"

    one_cpu = "type: fleet\nname: local\nnodes: 1\nlocal: {cpu: 1, memory: 1GB}\n"
    array = "type: task\nname: array\narray: 1-12\n" + noting("$FLEETFORM_ARRAY_INDEX")
    sweep = "type: task\nname: sweep\nmatrix: {lr: [1e-3, 0.5, 2, 10]}\n"
    lab.write(one_cpu, array, sweep + noting("${{ matrix.lr }}"))
    applied = lab.run("apply", "-y")
    assert applied.returncode == 0, applied.stderr
    numbers = [str(index) for index in range(1, 13)]
    assert order.read_text().split() == [*numbers, "0.001", "0.5", "2", "10"]


def test_a_terminal_shows_the_runs_and_is_left_clean(lab):
    """Asked and answered at the keyboard; a table while several run, the summary afterwards."""
    lab.write(FLEET, lab.long, lab.long.replace("name: long", "name: other"))
    terminal = lab.terminal("apply")
    terminal.await_text("Apply 3 changes? [y/N]")
    terminal.type("y\n")
    terminal.await_text("2 running")
    lab.let_end()
    assert terminal.end() == 0
    assert "Done: 2 runs succeeded." in terminal.shown
    # DECTCEM: what was hidden while drawing is shown again.
    assert terminal.shown.rfind("\x1b[?25h") > terminal.shown.rfind("\x1b[?25l")


def test_an_interrupt_leaves_the_runs_alone(lab):
    """Ctrl-C says that they go on, they do, and a second apply follows the same attempt."""
    lab.write(FLEET, lab.long)
    terminal = lab.terminal("apply", "-y")
    terminal.await_text("\nbegins\r\n")
    terminal.interrupt()
    assert terminal.end() == 130
    assert "running jobs continue" in terminal.shown
    lab.let_end()
    again = lab.run("apply", "-y")
    assert again.returncode == 0, again.stderr
    assert lab.run("logs", "long").stdout == "begins\nends\n"
    assert lab.rows()["long"]["attempt"] == 1


def test_a_detached_apply_is_followed_by_the_next(lab):
    """Nobody waits, and nothing is done twice."""
    lab.write(FLEET, SHORT)
    assert lab.run("apply", "-y", "--detach").returncode == 0
    assert lab.run("apply", "-y").returncode == 0
    assert lab.rows()["short"]["state"] == "done"
    assert lab.rows()["short"]["attempt"] == 1


def test_a_run_is_followed_and_stopped(lab):
    """Output arrives while it runs; a stopped run says who stopped it."""
    lab.write(FLEET, lab.long)
    apply = lab.terminal("apply", "-y")
    lab.await_state("long", "running")
    following = lab.terminal("logs", "long", "-f")
    following.await_text("begins")
    stopped = lab.run("stop", "long", "--apply", "-y")
    assert "+state: stopped" in stopped.stdout, stopped.stderr
    assert following.end() == 0
    # What the tree says of it now is that it does not run.
    assert apply.end() == 0
    assert lab.rows()["long"]["state"] == "stopped"
    assert "its document says `state: stopped`, applied by " in lab.run("why", "long").stdout


def test_serve_answers_and_apply_hands_over(lab):
    """The API shows what ps shows; apply leaves the work to whoever serves; Ctrl-C ends it."""
    lab.write(FLEET, SHORT)
    serving = lab.terminal("serve", "--listen", "127.0.0.1:0")
    serving.await_text("/api/v1")
    port = re.search(r"http://127\.0\.0\.1:(\d+)/api/v1", serving.shown)[1]
    lab.await_state("short", "done")
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/api/v1/runs", timeout=PATIENCE_SECONDS
    ) as answer:
        assert [row["state"] for row in json.load(answer)["items"]] == ["done"]
    refused = urllib.request.Request(f"http://127.0.0.1:{port}/api/v1/runs", method="POST")
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(refused, timeout=PATIENCE_SECONDS)
    with raised.value as answer:
        assert answer.code == 405
    for options in ((), ("--listen", f"127.0.0.1:{port}")):
        second = lab.run("serve", *options)
        assert second.returncode == 6
        assert "serve (pid " in second.stderr
        assert f" on {socket.gethostname()}) manages this environment" in second.stderr
    lab.write(FLEET, SHORT, BAD)
    # Whoever of the two is faster: this one asks about both.
    handed = lab.run("apply", "-y", "--target", "short", "--target", "bad")
    assert handed.returncode == 4, handed.stderr
    # Who does not wait for runs still hears what came of the plan's own steps.
    (lab.root / "full").mkdir()
    (lab.root / "full" / "data").touch()
    volume = f"type: volume\nname: full\nfleet: local\npath: {lab.root / 'full'}\n"
    lab.write(FLEET, SHORT, volume)
    left = lab.run("apply", "-y", "--detach", "--allow-destroy")
    assert left.returncode == 1, left.stdout
    assert "volume/full" in left.stderr
    serving.interrupt()
    assert serving.end() in {0, 130}


def test_an_address_that_somebody_has_is_not_listened_at(lab):
    """It is said before anything begins, and nothing claims to answer."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        serving = lab.run("serve", "--once", "--listen", address)
    assert serving.returncode == 1
    assert f"--listen {address}: address already in use" in serving.stderr
    assert "the API answers" not in serving.stdout


def test_serve_once_ends_as_an_apply_does(lab):
    """A pipeline sees what failed, what stays blocked and what is invalid; an earlier failure is over."""
    codes = {}

    def serve_once(name, *documents):
        lab.write(FLEET, *documents)
        ended = lab.run("serve", "--once")
        codes[name] = ended.returncode, ended.stdout + ended.stderr

    serve_once("all done", SHORT)
    serve_once("nothing to do", SHORT)
    serve_once("a run fails", SHORT, BAD)
    serve_once("a run failed earlier", SHORT, BAD)
    serve_once(
        "a change is blocked", SHORT, BAD, "type: dev-environment\nname: desk\nide: vscode\n"
    )
    serve_once("a document is invalid", SHORT, BAD, "type: task\nname: two\n")
    (lab.root / "full").mkdir()
    (lab.root / "full" / "data").touch()
    volume = f"type: volume\nname: full\nfleet: local\npath: {lab.root / 'full'}\n"
    serve_once("a step fails", SHORT, BAD, volume)
    assert {name: code for name, (code, _said) in codes.items()} == {
        "all done": 0,
        "nothing to do": 0,
        "a run fails": 4,
        "a run failed earlier": 0,
        "a change is blocked": 3,
        "a document is invalid": 1,
        "a step fails": 1,
    }, codes
