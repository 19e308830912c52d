"""The agent's own log: nothing makes it grow without end, and its end is what is kept."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest

from fleetform.agents.host.ownlog import OwnLog

LOOP = """
import asyncio, logging, os, sys
from fleetform.agents.host import background, ownlog
background.redirect("agent.log")
told, tell = os.pipe()
os.set_blocking(told, False)
child = os.fork()
if child == 0:
    while True:
        try:
            raise RuntimeError("raw " + "x" * 20000)
        except RuntimeError:
            sys.excepthook(*sys.exc_info())
        try:
            os.read(told, 1)
            os._exit(0)
        except BlockingIOError:
            pass
logging.basicConfig(level=logging.INFO)
loop = asyncio.new_event_loop()
left = 1500

def fail():
    global left
    left -= 1
    loop.call_soon(fail if left else loop.stop)
    raise RuntimeError("callback " + "y" * 20000)

loop.call_soon(fail)
loop.run_forever()
print("the last line")
# Both have ended between two lines, so that no copy is only begun when somebody looks.
os.write(tell, b".")
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.fixture
def open_log():
    """Open a log as an agent does, which has it until its own end."""
    opened = []

    def open_one(path, bytes_max):
        opened.append(OwnLog(str(path), bytes_max))
        return opened[-1]

    yield open_one
    for log in opened:
        os.close(log.fileno())


def test_one_backup_and_the_newest_lines(open_log, tmp_path):
    """Both files stay within the bound, and together they end with what was written last."""
    path = tmp_path / "agent.log"
    log = open_log(path, 1000)
    for number in range(500):
        log.write(f"line {number}\n")
    kept = (tmp_path / "agent.log.1").read_text() + path.read_text()
    assert path.stat().st_size <= 1000
    assert (tmp_path / "agent.log.1").stat().st_size <= 1000
    assert kept.splitlines() == [f"line {n}" for n in range(500)][-len(kept.splitlines()) :]
    assert sorted(each.name for each in tmp_path.iterdir()) == ["agent.log", "agent.log.1"]


def test_one_write_larger_than_all(open_log, tmp_path):
    """Its end is kept, where a traceback says the error."""
    log = open_log(tmp_path / "agent.log", 1000)
    log.write("x" * 5000 + "the error")
    assert (tmp_path / "agent.log").read_text() == "x" * 991 + "the error"


def test_log_from_before_the_bound(open_log, tmp_path):
    """What an earlier release let grow is cut at the first line, and its end is kept."""
    path = tmp_path / "agent.log"
    path.write_text("x" * 70_000 + "the end\n")
    open_log(path, 1000).write("new\n")
    assert path.read_text() == "new\n"
    assert (tmp_path / "agent.log.1").read_text() == "x" * 992 + "the end\n"


def test_backup_that_cannot_be_written(open_log, tmp_path):
    """The bound holds all the same."""
    (tmp_path / "agent.log.1").mkdir()
    log = open_log(tmp_path / "agent.log", 1000)
    for _ in range(500):
        log.write("some line\n")
    assert (tmp_path / "agent.log").stat().st_size <= 1000


def test_messages_are_bounded_too(open_log, tmp_path):
    """A handler of `logging` writes through it, surrogates and all."""
    log = open_log(tmp_path / "agent.log", 1000)
    handler = logging.StreamHandler(log)
    for _ in range(100):
        handler.emit(logging.LogRecord("x", logging.INFO, "", 0, "odd \udcff name", None, None))
    assert "odd \\udcff name\n" in (tmp_path / "agent.log").read_text()
    assert (tmp_path / "agent.log").stat().st_size <= 1000


def test_endless_tracebacks_of_two_processes(tmp_path):
    """A callback that fails for ever, beside a process that prints raw: 16 MiB and a little."""
    done = subprocess.run([sys.executable, "-c", LOOP], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 0
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    # Two may find room for one line at the same time.
    assert max(sizes) < (8 << 20) + (1 << 16)
    assert sum(sizes) > 8 << 20
