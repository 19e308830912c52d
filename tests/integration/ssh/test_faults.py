"""
Faults of hosts, connections and controllers over SSH, driven the way people drive the program.

Each job writes to a file on its host when it starts, while it works and when it ends. After each
fault these files say that no job was lost and none ran twice, and `logs` has every line.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleetform.agents.host import launch
from integration.ssh.environment import Environment, wait_for_exit
from lab import Lab

RETRY = "retry: {on: [node-failure], max_attempts: 3}\n"
NAMES = ("first", "second", "third")
"""In this order they get hosts."""

QUIET_SECONDS = 2.0
"""A wrong second attempt on a free host starts within half a second."""

SESSIONS = "sshd.*root@notty|sshd.*root .priv"


@pytest.fixture
def environment(home: Path, hosts: Lab, tmp_path: Path) -> Iterator[Environment]:
    environment = Environment(tmp_path / "first", hosts)
    yield environment
    environment.close()


def kill_sessions(hosts: Lab, host: str) -> None:
    hosts.run(host, "pkill", "-KILL", "-f", SESSIONS, check=False)


def kill_agent(environment: Environment, host: str) -> None:
    """End the agent without warning; its jobs go on."""
    pid = (environment.agent(host) / "agent.pid").read_text().split()[0]
    environment.hosts.run(host, "kill", "-KILL", pid)


def supervisor(environment: Environment, host: str) -> str:
    """Return the id, in its host, of the supervisor of the only job there."""
    (started,) = environment.agent(host).glob("jobs/*/started")
    return str(launch.load_pid(started.read_bytes()))


def test_killed_sessions_lose_nothing(environment: Environment, hosts: Lab) -> None:
    """The SSH server's processes are killed again and again; job and output are whole."""
    apply = environment.apply(
        environment.fleet("node1"), environment.job("one"), environment.job("two")
    )
    first = environment.wait_for_start("one").run
    for _ in range(2):
        kill_sessions(hosts, "node1")
        environment.wait_for_work(first)
        environment.wait_until_host("node1", "ready")
    environment.open_gate("one")
    environment.open_gate("two")
    wait_for_exit(environment, apply)
    environment.check_run("one")
    environment.check_run("two")
    environment.check_nothing_shared()


def test_a_killed_agent_is_started_again(environment: Environment) -> None:
    """Its job goes on meanwhile, and ends while there is no agent."""
    apply = environment.apply(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    kill_agent(environment, "node1")
    environment.wait_for_work("one")
    environment.wait_until_host("node1", "ready")
    kill_agent(environment, "node1")
    environment.open_gate("one")
    wait_for_exit(environment, apply)
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.parametrize("with_agent", [False, True])
def test_a_killed_supervisor_ends_its_job(environment: Environment, with_agent: bool) -> None:
    """Its agent ends what is left of the job, and proves it: only then the job is tried again."""
    apply = environment.apply(
        environment.fleet("node1"), environment.job("one", RETRY), environment.job("two")
    )
    environment.wait_for_start("one")
    pid = supervisor(environment, "node1")
    if with_agent:
        kill_agent(environment, "node1")
    environment.hosts.run("node1", "kill", "-KILL", pid)
    environment.wait_for_start("one", attempt=2)
    environment.open_gate("one")
    environment.wait_for_start("two")
    pid = supervisor(environment, "node1")
    if with_agent:
        kill_agent(environment, "node1")
    environment.hosts.run("node1", "kill", "-KILL", pid)
    output = wait_for_exit(environment, apply, 4)
    assert "two: failed" in output
    environment.check_run("one", attempts=2)
    environment.check_run("two", "failed")
    environment.check_nothing_shared()


def test_a_job_ends_behind_a_cut_cable(environment: Environment, hosts: Lab) -> None:
    """Its end and its output come once the cable is back; until then the host is unreachable."""
    apply = environment.apply(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    hosts.cut("node1")
    try:
        environment.open_gate("one")
        environment.wait_until(lambda: environment.ends("one") == [(1, 0)], "the end")
        environment.wait_until_host("node1", "unreachable")
        assert environment.states() == {"one": "unknown"}
        assert "1 host unreachable" in environment.run("status").stdout
        assert apply.poll() is None
    finally:
        hosts.join("node1")
    wait_for_exit(environment, apply)
    environment.check_run("one")
    environment.check_nothing_shared()


def test_a_killed_controller_has_a_successor(environment: Environment) -> None:
    """It finds the jobs of both hosts, and the one that ended while there was no controller."""
    documents = (
        environment.fleet("node1", "node2"),
        *(environment.job(name) for name in NAMES),
    )
    apply = environment.apply(*documents)
    first = environment.wait_for_start("first")
    environment.wait_for_start("second")
    apply.send_signal(signal.SIGKILL)
    assert environment.finish(apply)[0] == -signal.SIGKILL
    environment.open_gate("first")
    environment.wait_until(lambda: environment.ends("first") == [(1, 0)], "the end")
    apply = environment.control("apply", "-y")
    assert environment.wait_for_start("third").host == first.host
    environment.wait_for_work("second")
    environment.open_gate("second")
    environment.open_gate("third")
    wait_for_exit(environment, apply)
    for name in NAMES:
        environment.check_run(name)
    environment.check_nothing_shared()


def test_a_reboot_proves_a_job_lost(environment: Environment, hosts: Lab) -> None:
    """While its host is off nothing is tried again, though another host is free; then it is."""
    apply = environment.apply(environment.fleet("node1", "node2"), environment.job("one", RETRY))
    host = environment.wait_for_start("one").host
    hosts.kill(host)
    try:
        environment.wait_until_host(host, "unreachable")
        assert environment.states() == {"one": "unknown"}
        time.sleep(QUIET_SECONDS)
        assert environment.starts("one") == [(1, 0)]
        booted = time.time()
    finally:
        hosts.start(host)
    assert environment.wait_for_start("one", attempt=2).at > booted
    environment.open_gate("one")
    wait_for_exit(environment, apply)
    environment.check_run("one", attempts=2)
    environment.check_nothing_shared()
    assert "lost: the host was rebooted" in environment.run("events", "one").stdout
