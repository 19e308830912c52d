"""The clock of a host is set while jobs run there; only a machine with its own kernel has a clock of its own."""

from __future__ import annotations

import contextlib
import sqlite3
import time

from integration.ledger.lab import task
from integration.ssh.environment import Environment, wait_for_exit
from lab import Lab
from required import need

FLEET = """\
type: fleet
name: lab
sharing: whole
run_as: root
ssh_config:
  hosts: [{hostname: machine1, user: root, capacity: {cpu: 4, memory: 8GB, disk: 1TB}}]
"""
WORK = "n=0; until [ -e /root/gate ]; do n=$((n + 1)); echo again $n; sleep 0.2; done"
LIMIT_SECONDS = 30
MORE = f"max_duration: {LIMIT_SECONDS}s\non_silence: stop after 1m\n"


def set_clock(environment: Environment, change: str) -> None:
    """Set the clock of the machine, and wait until the run that works there has gone on working."""
    environment.hosts.run("machine1", "date", "--set", change)
    name = next(name for name, state in environment.states().items() if state == "running")
    before = len(environment.run("logs", name).stdout.splitlines())
    environment.wait_until(
        lambda: len(environment.run("logs", name).stdout.splitlines()) > before + 2, "more output"
    )
    assert environment.host_states() == {"machine1": "ready"}


def test_a_host_whose_clock_is_set(environment: Environment, hosts: Lab) -> None:
    """Durations, time limits and silence go by a clock that nobody sets; the ledger's times are in order."""
    need(
        "machines",
        hosts.record["hosts"]["machine1"]["kind"] == "uml",
        "a container has the clock of this machine; `apt-get install user-mode-linux`",
    )
    first = task("first", WORK, more="on_silence: stop after 1m\n")
    second = task("second", "while :; do echo again; sleep 0.2; done", more=MORE)
    third = task("third", "echo ran")
    serve = environment.start("serve")
    began = time.monotonic()
    environment.declare(FLEET, first)
    try:
        environment.wait_until_state("first", "running")
        working = time.monotonic()
        set_clock(environment, "+1 hour")
        least = {"first": time.monotonic() - working, "second": LIMIT_SECONDS, "third": 0}
        hosts.run("machine1", "touch", "/root/gate")
        environment.wait_until_state("first", "done")

        environment.declare(FLEET, first, second)
        environment.wait_until_state("second", "running")
        set_clock(environment, "-2 hours")
        environment.wait_until_state("second", "failed")

        environment.declare(FLEET, first, second, third)
        environment.wait_until_state("third", "done")
    finally:
        hosts.run("machine1", "date", "--set", f"@{time.time():.0f}")
        hosts.run("machine1", "rm", "-f", "/root/gate")
    most = time.monotonic() - began
    serve.terminate()
    wait_for_exit(environment, serve)

    with contextlib.closing(sqlite3.connect(environment.ledger)) as ledger:
        jobs = ledger.execute(
            "SELECT r.name, j.cause, r.submitted_at_ms, j.started_at_ms, j.finished_at_ms,"
            " r.finished_at_ms FROM runs r JOIN jobs j ON j.run_uid = r.uid ORDER BY r.name"
        ).fetchall()
        events = [at for (at,) in ledger.execute("SELECT at_ms FROM events ORDER BY number")]
    causes = {name: cause for name, cause, *_ in jobs}
    assert causes == {"first": "exited", "second": "max_duration", "third": "exited"}
    for name, _, *times in jobs:
        assert times == sorted(times)
        assert times[-1] <= time.time() * 1000
        _, started, finished, _ = times
        assert least[name] <= (finished - started) / 1000 <= most
    assert events == sorted(events)
    done = environment.run("destroy", "-y", "--allow-destroy")
    assert done.returncode == 0, done.stdout + done.stderr
