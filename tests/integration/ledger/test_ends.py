"""Work that was asked to end is ended, whoever asked and whoever drives it since."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time

from integration.ledger.lab import FLEET, PATIENCE_SECONDS, Lab, task

SHORT = "stop_duration: 1s\n"


def _begin(lab: Lab, name: str = "train", more: str = SHORT) -> int:
    """Have a run at work that nobody drives and that does not heed TERM; returns its process."""
    pid = lab.folder / f"{name}.pid"
    lab.declare(
        FLEET,
        task(
            name,
            f'trap "" TERM; echo $$ > {pid}; {lab.says(name)}; while true; do sleep 0.1; done',
            more=more,
        ),
    )
    apply = lab.start("apply", "-y")
    lab.wait_until_said(name)
    lab.wait_until_state(name, "running")
    apply.kill()
    lab.finish(apply)
    return int(pid.read_text())


def _is_at_work(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _stop_between_writes(lab: Lab, pid: int) -> None:
    """Pause a process between its transactions: while it holds a lock of SQLite, no other process can write."""
    while True:
        os.kill(pid, signal.SIGSTOP)
        try:
            with contextlib.closing(sqlite3.connect(lab.ledger, timeout=0.2)) as connection:
                connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            os.kill(pid, signal.SIGCONT)
        else:
            return


def test_an_apply_sees_the_end_of_what_it_removes(lab: Lab) -> None:
    """It returns once the work is over, also where that takes a KILL."""
    pid = _begin(lab)
    lab.declare(FLEET)
    done = lab.run("apply", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not _is_at_work(pid)
    assert lab.states() == {"train": "stopped"}


def test_who_does_not_wait_leaves_once_the_end_is_asked_of_the_host(lab: Lab) -> None:
    """The host ends the work by itself then, and the next apply takes that in."""
    pid = _begin(lab)
    lab.declare(FLEET)
    done = lab.run("apply", "-y", "--allow-destroy", "--detach")
    assert done.returncode == 0, done.stdout + done.stderr
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _is_at_work(pid):
        assert time.monotonic() < deadline, "nobody has ended it"
        time.sleep(0.05)
    assert lab.run("apply", "-y").returncode == 0
    assert lab.states() == {"train": "stopped"}


def test_an_emergency_stop_returns_although_a_successor_waits(lab: Lab) -> None:
    """What was at work is over; what waits for it is kept by the very override."""
    pid = _begin(lab, more=f"{SHORT}on_change: after-finish\n")
    file = lab.tree / "tree.yaml"
    file.write_text(file.read_text().replace("sleep 0.1", "sleep 0.2"))
    assert lab.run("apply", "-y", "--detach").returncode == 0
    # A controller that is running would end it, and is not waited for so long.
    assert lab.run("controller", "stop").returncode == 0
    assert lab.states() == {"train": "pending"}
    done = lab.run("emergency", "stop", "train", "--reason", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    assert not _is_at_work(pid)
    # Nothing was started meanwhile, either.
    assert lab.states() == {"train": "pending"}


def test_break_glass_does_not_trust_a_manager_that_hangs(lab: Lab) -> None:
    """It says who does not act and what ends that; then it ends the work itself."""
    pid = _begin(lab)
    serve = lab.start("serve")
    while f"{serve.pid}" not in lab.run("lock", "show").stdout:
        assert serve.poll() is None
    _stop_between_writes(lab, serve.pid)
    stop = ("emergency", "stop", "train", "--reason", "smoke")
    done = lab.run(*stop)
    assert done.returncode == 6, done.stdout + done.stderr
    assert f"serve (pid {serve.pid} on " in done.stderr
    assert "fleetform lock break --force" in done.stderr
    assert _is_at_work(pid)
    broken = lab.run("lock", "break", "--force", "--reason", "it hangs")
    assert broken.returncode == 0, broken.stdout + broken.stderr
    done = lab.run(*stop)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not _is_at_work(pid)


def test_a_job_that_stops_all_who_watch_it(lab: Lab) -> None:
    """Supervisor, spawner and agent get SIGSTOP at once; the controller continues the agent."""
    stop = (
        "supervisor=$PPID; spawner=$(cut -d' ' -f4 /proc/$supervisor/stat);"
        " kill -STOP $supervisor $spawner $(cut -d' ' -f4 /proc/$spawner/stat)"
    )
    more = "max_duration: 5s\nstop_duration: 1s\n"
    lab.declare(FLEET, task("stopper", stop, lab.says("begun"), "sleep 1000", more=more))
    code, output = lab.finish(lab.start("apply", "-y"))
    assert code == 4, output
    assert lab.said() == ["begun"]
    assert "ran longer than its max_duration of 5s" in lab.run("why", "stopper").stdout
