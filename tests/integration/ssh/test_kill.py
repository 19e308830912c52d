"""
`kill -9` at random moments on hosts over SSH: controller, agents, supervisors, sessions, and hosts.

As in `integration/crash`, each job writes a line to a file on its host when it starts and when it ends.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.crash.test_kill import _command_line, _environment, _parent, _processes
from integration.ssh.environment import Environment
from integration.ssh.test_faults import kill_agent, kill_sessions
from lab import Lab

pytestmark = pytest.mark.waits

KILLS = int(os.environ.get("FLEETFORM_TEST_SSH_KILLS", "20"))
"""`make test-faults` makes more than two hundred."""

PATIENCE_SECONDS = 1500.0

HOSTS = ("node1", "node2")

FLEET = """\
type: fleet
name: lab
run_as: root
ssh_config:
  hosts:
    - {hostname: node1, capacity: {cpu: 12, memory: 64GB, disk: 1TB}}
    - {hostname: node2, capacity: {cpu: 12, memory: 64GB, disk: 1TB}}
"""
_TASK = """\
type: task
name: {name}
array: 1-{count}
nodes: {nodes}
commands:
  - echo "start $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
  - sleep $((RANDOM % 2)).$((RANDOM % 9))
  - echo "end $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
shell: bash
rerun: {round}
env:
  WITNESS: {witness}
resources: {{cpu: {nodes}}}
retry:
  on: [error, interruption, node-failure]
  max_attempts: 50
"""


class Arena(Environment):
    """An environment on two hosts, and what is killed of it."""

    def __init__(self, folder: Path, hosts: Lab) -> None:
        super().__init__(folder, hosts)
        self.random = random.Random(1)
        self.kills: Counter[str] = Counter()
        self.round = 1
        self.witness_path = f"/root/{self.uid}.witness"
        self.output = folder / "apply.log"
        self.controller: subprocess.Popen[str] | None = None

    def begin(self) -> None:
        """Start a controller; what it prints goes to a file, which holds more than a pipe."""
        tasks = [
            _TASK.format(
                name=name, count=count, nodes=nodes, round=self.round, witness=self.witness_path
            )
            for name, count, nodes in (("many", 40, 1), ("gang", 6, 2))
        ]
        self.declare(FLEET, *tasks)
        with self.output.open("ab") as output:
            self.controller = self.control_into(output, "apply", "-y")

    def supervisors(self) -> list[int]:
        """Return the parents of job processes; the ids of this machine, which sees those of its hosts."""
        jobs = self.job_processes()
        parents = {_parent(pid) for pid in jobs}
        return sorted(
            {pid for pid in parents if f"/hosts/{self.uid}/" in _command_line(pid)} - set(jobs)
        )

    def job_processes(self) -> list[int]:
        return [pid for pid in _processes() if self.witness_path in _environment(pid)]

    def kill_something(self) -> None:
        kinds = ("controller", "agent", "supervisor", "sessions", "host")
        kind = self.random.choices(kinds, (4, 8, 8, 4, 1))[0]
        host = self.random.choice(HOSTS)
        if kind == "controller":
            assert self.controller is not None
            if self.controller.poll() is not None:
                return
            self.controller.kill()
            self.controller.wait()
        elif kind == "agent":
            try:
                kill_agent(self, host)
            except (AssertionError, OSError, IndexError):
                return  # It is starting, or ending.
        elif kind == "supervisor":
            victims = self.supervisors()
            if not victims:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.random.choice(victims), signal.SIGKILL)
        elif kind == "sessions":
            kill_sessions(self.hosts, host)
        else:
            self.hosts.kill(host)
            self.hosts.start(host)
        self.kills[kind] += 1

    def lines(self) -> list[list[str]]:
        """Return what the jobs of all hosts said."""
        found = []
        for host in self.hosts.hosts:
            path = self.disk(host) / f"{self.uid}.witness"
            found += (
                [line.split() for line in path.read_text().splitlines()] if path.exists() else []
            )
        return found

    def tail(self) -> str:
        return self.output.read_text(errors="replace")[-4000:]


@pytest.fixture
def arena(home: Path, hosts: Lab, tmp_path: Path) -> Iterator[Arena]:
    arena = Arena(tmp_path / "first", hosts)
    yield arena
    arena.run("controller", "stop")
    arena.close()


@pytest.mark.crash
def test_no_job_is_lost_and_none_starts_twice_over_ssh(
    arena: Arena, summarise: Callable[[str], None]
) -> None:
    """Through all kills every run ends done, no job starts twice, and nothing is left over."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    arena.begin()
    while arena.kills.total() < KILLS:
        assert time.monotonic() < deadline, arena.tail()
        # A controller that has just begun gets the time to reach its hosts, mostly.
        time.sleep(arena.random.uniform(0.05, 0.6 if arena.job_processes() else 2.0))
        arena.kill_something()
        _go_on(arena)
    while _go_on(arena, again=False):
        assert time.monotonic() < deadline, arena.tail()
        time.sleep(0.2)
    _judge(arena)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(arena.kills.items()))
    summarise(
        f"crash test over SSH: {arena.kills.total()} kills ({kinds}), {len(arena.states())} runs"
        f" done in {arena.round} rounds, none lost, none twice, no orphan"
    )


def _go_on(arena: Arena, *, again: bool = True) -> bool:
    """Start the next controller where the last one has ended; False when all is done."""
    assert arena.controller is not None
    code = arena.controller.poll()
    if code is None:
        return True
    if code == 0 and not again:
        return False
    # Killed, or all done before enough was killed: then the same again, as new runs.
    assert code in {0, -signal.SIGKILL}, f"apply ended with {code}:\n{arena.tail()}"
    arena.round += code == 0
    arena.begin()
    return True


def _judge(arena: Arena) -> None:
    starts = Counter(tuple(key) for word, *key in arena.lines() if word == "start")
    ends = {key[0] for word, *key in arena.lines() if word == "end"}
    assert {key: count for key, count in starts.items() if count > 1} == {}
    runs = arena.json("ps", "--all")
    assert {run["state"] for run in runs} == {"done"}
    assert [run["name"] for run in runs if run["uid"] not in ends] == []
    arena.wait_until(lambda: arena.job_processes() == [], "the end of all processes")
    assert arena.allocations() == 0
