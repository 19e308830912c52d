"""
Faults of hosts over SSH that come seldom: `make test-faults` tries all, `make test` those that are quick.

As in `test_faults`, files that jobs write on their hosts say that none was lost and none ran twice.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from integration.ssh.environment import CLOCK, RELEASE, Environment, wait_for_exit
from lab import Lab

STATE = "/root/.local/state/fleetform"
SLOW_SECONDS = 8.0
"""Longer than each time-out of a controller of these tests, which are 3 s."""

FILES_BYTES = 16 << 20
"""Takes two minutes on a slow link."""


pytestmark = [pytest.mark.waits, pytest.mark.usefixtures("fault_row")]


def peer(hosts: Lab, host: str) -> str:
    """Return the address from which the controller is connected to a host."""
    listed = hosts.run(host, "ss", "-tnH", "state", "established")
    return listed.split()[3].rpartition(":")[0]


def test_a_link_that_carries_one_way_only(environment: Environment, hosts: Lab) -> None:
    """The host hears the controller, whose connection stays open: silence alone shows it."""
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    controller = peer(hosts, "node1")
    hosts.run("node1", "ip", "route", "add", "blackhole", f"{controller}/32")
    try:
        environment.wait_until_host("node1", "unreachable")
        environment.open_gate("one")
        environment.wait_until(lambda: environment.ends("one") == [(1, 0)], "the end")
        assert environment.states() == {"one": "unknown"}
    finally:
        hosts.run("node1", "ip", "route", "del", "blackhole", f"{controller}/32")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


def test_a_controller_that_is_suspended(environment: Environment) -> None:
    """A job ends meanwhile; the next one starts when the controller is back, and neither twice."""
    serve = environment.serve(
        environment.fleet("node1"), environment.job("first"), environment.job("second")
    )
    one = environment.wait_for_start("first").run
    serve.send_signal(signal.SIGSTOP)
    try:
        environment.open_gate(one)
        environment.wait_until(lambda: environment.ends(one) == [(1, 0)], "the end")
        # Long enough for its connections to be given up on both ends.
        time.sleep(SLOW_SECONDS)
        assert environment.starts("second") == []
    finally:
        serve.send_signal(signal.SIGCONT)
    environment.wait_for_start("second")
    environment.open_gate("second")
    environment.wait_for_done(serve, "second")
    environment.check_run("first")
    environment.check_run("second")
    environment.check_nothing_shared()


def test_two_controllers_of_one_environment(environment: Environment, tmp_path: Path) -> None:
    """A copy of the state folder drives the same host: one of the two is refused, nothing runs twice."""
    serve = environment.serve(
        environment.fleet("node1"), environment.job("first"), environment.job("second")
    )
    # A copy without it would be a ledger older than what the host knows, with which nothing is started unasked.
    environment.wait_until_state("first", "running")
    copy = tmp_path / "copy"
    serve.send_signal(signal.SIGSTOP)
    shutil.copytree(environment.state, copy, ignore=shutil.ignore_patterns("*.sock"))
    serve.send_signal(signal.SIGCONT)
    other = environment.control(
        "serve",
        FLEETFORM_STATE_HOME=str(copy),
        # As on another machine, which has seen nothing of the ledger.
        FLEETFORM_CONFIG_HOME=str(tmp_path / "config"),
    )
    refused = environment.wait_until_printed("fleet", "show", "lab", text="has taken over")
    assert "unreachable" in refused
    environment.open_gate("first")
    environment.open_gate("second")
    environment.wait_until(lambda: environment.ends("second") == [(1, 0)], "the second run")
    for child in (serve, other):
        child.terminate()
        environment.finish(child)
    assert environment.starts("first") == [(1, 0)]
    assert environment.starts("second") == [(1, 0)]


@pytest.mark.fault
def test_a_clock_that_jumps(environment: Environment, tmp_path: Path) -> None:
    """The controller's clock goes an hour forward and two back while a job runs and another waits."""
    clock = tmp_path / "clock"
    clock.write_text("0")
    serve = environment.serve(
        environment.fleet("node1"),
        environment.job("first"),
        environment.job("second"),
        **{CLOCK: str(clock)},
    )
    environment.wait_for_start("first")
    for seconds in (3600, -7200):
        clock.write_text(str(seconds))
        environment.wait_for_work("first")
        assert environment.host_states() == {"node1": "ready"}
    environment.open_gate("first")
    environment.wait_for_start("second")
    environment.open_gate("second")
    environment.wait_for_done(serve, "second")
    environment.check_run("first")
    environment.check_run("second")
    environment.check_nothing_shared()


@pytest.mark.fault
@pytest.mark.parametrize(("before", "after"), [("", "newer"), ("newer", "")])
def test_an_agent_of_another_release(environment: Environment, before: str, after: str) -> None:
    """A controller of another release, later or earlier, puts its own agent in the place of the first."""

    def serving() -> str:
        # While one gives way to the other there is none.
        file = environment.agent("node1") / "agent.pid"
        pid = file.read_text().strip() if file.exists() else ""
        line = environment.hosts.run("node1", "cat", f"/proc/{pid}/cmdline", check=False)
        return line.rpartition("fleetform-agent-")[2].partition(".pyz")[0]

    first, second = ({RELEASE: name} if name else {} for name in (before, after))
    serve = environment.serve(environment.fleet("node1"), environment.job("one"), **first)
    environment.wait_for_start("one")
    earlier = serving()
    serve.terminate()
    wait_for_exit(environment, serve)
    serve = environment.control("serve", **second)
    environment.wait_until(lambda: serving() not in {"", earlier}, "the other agent")
    environment.wait_for_work("one")
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.fault
def test_a_copy_of_a_host(environment: Environment) -> None:
    """A second machine that has the disk of the first one takes over none of its jobs."""
    jobs = environment.job("one"), environment.job("two")
    serve = environment.serve(environment.fleet("node1"), *jobs)
    one = environment.wait_for_start("one")
    copy = environment.agent("node2")
    copy.parent.mkdir(parents=True, mode=0o700)
    subprocess.run(["cp", "-a", environment.agent("node1"), copy], check=True)
    environment.declare(environment.fleet("node1", "node2"), *jobs)
    wait_for_exit(environment, environment.control("apply", "-y", "--detach"))
    assert environment.wait_for_start("two").host == "node2"
    assert one.host == "node1"
    environment.wait_for_work("one")
    assert environment.install_id("node1") != environment.install_id("node2")
    environment.open_gate("one")
    environment.open_gate("two")
    environment.wait_until_state("two", "done")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_run("two")
    environment.check_nothing_shared()


@pytest.mark.fault
def test_a_gang_that_loses_a_host_before_it_starts(environment: Environment, hosts: Lab) -> None:
    """One rank is prepared, the other waits for its files: none runs until both are, and then once."""
    fleet = environment.fleet("node1", "node2")
    serve = environment.serve(fleet)
    environment.wait_until_printed("fleet", text="2/2")
    (environment.tree / "data").write_bytes(os.urandom(FILES_BYTES))
    hosts.slow("node2")
    environment.declare(fleet, environment.job("gang", "nodes: 2\nfiles: [data]\n"))
    wait_for_exit(environment, environment.control("apply", "-y", "--detach"))
    environment.wait_until(
        lambda: environment.job_states().count("prepared") == 1, "a prepared rank"
    )
    hosts.kill("node2")
    try:
        environment.wait_until_host("node2", "unreachable")
        assert environment.starts("gang") == []
    finally:
        # Its new link is as fast as the others.
        hosts.start("node2")
    for rank in range(2):
        environment.wait_until(
            lambda rank=rank: rank in [one.rank for one in environment.witnesses("gang")], "a rank"
        )
    environment.open_gate("gang")
    environment.wait_for_done(serve, "gang")
    starts = environment.starts("gang")
    assert [rank for _, rank in starts] == [0, 1]
    assert len({attempt for attempt, _ in starts}) == 1
    assert environment.ends("gang") == starts
    environment.check_nothing_shared()


@pytest.mark.fault
def test_a_jump_host_that_is_off(environment: Environment, hosts: Lab) -> None:
    """The host behind it is unreachable until it is back; its job ends meanwhile."""
    fleet = (
        "type: fleet\nname: lab\nsharing: whole\nrun_as: root\nssh_config:\n"
        "  hosts: [node2]\n  proxy_jump: root@node1\n"
    )
    serve = environment.serve(fleet, environment.job("one"))
    environment.wait_for_start("one")
    hosts.kill("node1")
    try:
        environment.wait_until_host("node2", "unreachable")
        environment.open_gate("one")
        environment.wait_until(lambda: environment.ends("one") == [(1, 0)], "the end")
    finally:
        hosts.start("node1")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.fault
def test_a_host_on_which_everything_times_out_once(environment: Environment, hosts: Lab) -> None:
    """Its agent and its SSH server stand still for longer than any time-out, and then go on."""
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    pid = (environment.agent("node1") / "agent.pid").read_text().split()[0]
    hosts.run("node1", "sh", "-c", f"pkill -STOP sshd; kill -STOP {pid}", check=False)
    # Process 1 is the SSH server, and obeys this machine only: no new connection is accepted either.
    os.kill(hosts.init_pid("node1"), signal.SIGSTOP)
    try:
        environment.wait_until_host("node1", "unreachable")
        time.sleep(SLOW_SECONDS)
        environment.wait_for_work("one")
    finally:
        os.kill(hosts.init_pid("node1"), signal.SIGCONT)
        hosts.run("node1", "sh", "-c", f"pkill -CONT sshd; kill -CONT {pid}", check=False)
    environment.wait_until_host("node1", "ready")
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.fault
def test_a_file_system_without_inodes(environment: Environment, hosts: Lab) -> None:
    """The job that runs ends with its exit code; the next one is tried again until it starts."""
    small = "resources: {cpu: 1.., memory: 1MB.., disk: 1MB..}\n"
    hosts.run("node1", "mkdir", "-p", STATE)
    hosts.run("node1", "mount", "-t", "tmpfs", "-o", "nr_inodes=4000,mode=700", "tmpfs", STATE)
    try:
        apply = environment.apply(
            environment.fleet("node1"),
            environment.job("first", small),
            environment.job("second", small),
        )
        environment.wait_for_start("first")
        fill = f"mkdir {STATE}/full; n=0; while : > {STATE}/full/$n; do n=$((n + 1)); done"
        hosts.run("node1", "sh", "-c", fill, check=False)
        environment.open_gate("first")
        environment.wait_until_printed("events", "second", text="No space left on device")
        hosts.run("node1", "rm", "-r", f"{STATE}/full")
        environment.wait_for_work("second")
        environment.open_gate("second")
        wait_for_exit(environment, apply)
        assert environment.states() == {"first": "done", "second": "done"}
        # Which attempt it is does not matter: one that could not be prepared has not started.
        assert len(environment.starts("second")) == 1
        environment.check_nothing_shared()
    finally:
        hosts.run("node1", "umount", "-l", STATE)
