"""
Faults of hosts, connections and controllers over SSH, driven the way people drive the program.

Each job writes to a file on its host when it starts, while it works and when it ends. After each
fault these files say that no job was lost and none ran twice, and `logs` has every line.
"""

from __future__ import annotations

import shutil
import signal
import time
import uuid
from collections.abc import Callable
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

pytestmark = [pytest.mark.waits, pytest.mark.usefixtures("fault_row")]


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
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    hosts.cut("node1")
    try:
        environment.open_gate("one")
        environment.wait_until(lambda: environment.ends("one") == [(1, 0)], "the end")
        environment.wait_until_host("node1", "unreachable")
        assert environment.states() == {"one": "unknown"}
        assert "host node1 is unreachable" in environment.run("status").stdout
        assert serve.poll() is None
    finally:
        hosts.join("node1")
    environment.wait_for_done(serve, "one")
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
    serve = environment.serve(environment.fleet("node1", "node2"), environment.job("one", RETRY))
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
    environment.wait_for_done(serve, "one")
    environment.check_run("one", attempts=2)
    environment.check_nothing_shared()
    assert "lost: the host was rebooted" in environment.run("events", "one").stdout


def test_a_host_that_went_off_without_a_controller_gets_no_run(
    environment: Environment, hosts: Lab
) -> None:
    """Its row says `ready`; the next controller hears its hosts first, and the run starts elsewhere."""
    fleet = environment.fleet("node1", "node2")
    wait_for_exit(environment, environment.apply(fleet))
    hosts.kill("node1")
    try:
        apply = environment.apply(fleet, environment.job("one"))
        assert environment.wait_for_start("one").host == "node2"
        environment.open_gate("one")
        wait_for_exit(environment, apply)
    finally:
        hosts.start("node1")
    environment.check_run("one")
    environment.check_nothing_shared()


def test_an_apply_without_changes_asks_silent_hosts(environment: Environment, hosts: Lab) -> None:
    """No controller runs that would; the ledger then says which of them are back."""
    wait_for_exit(environment, environment.apply(environment.fleet("node1", "node2")))
    serve = environment.control("serve")
    hosts.kill("node1")
    try:
        environment.wait_until_host("node1", "unreachable")
        serve.terminate()
        environment.finish(serve)
        off = environment.run("apply", "-y")
        assert "asking 1 host that did not answer" in off.stderr, off.stdout + off.stderr
        assert "1 host unreachable" in off.stdout
    finally:
        hosts.start("node1")

    def is_back() -> bool:
        assert environment.run("apply", "-y").returncode == 0
        return environment.host_states() == {"node1": "ready", "node2": "ready"}

    environment.wait_until(is_back, "an apply that hears node1")
    assert "asking" not in environment.run("apply", "-y").stderr


def test_a_changed_host_key_is_refused_until_it_is_known(
    environment: Environment, hosts: Lab, home: Path
) -> None:
    """The job goes on behind the wrong key; `fleet show` says why its host is not reached."""
    known = home / "known_hosts"
    known.write_text(hosts.known_hosts.read_text())
    config = home / ".ssh/config"
    config.write_text(config.read_text().replace(str(hosts.known_hosts), str(known)))
    serve = environment.serve(environment.fleet("node1"), environment.job("one"))
    environment.wait_for_start("one")
    hosts.rekey("node1")
    kill_sessions(hosts, "node1")
    environment.wait_until_printed("fleet", "show", "lab", text="has changed: it is SHA256:")
    assert environment.host_states() == {"node1": "unreachable"}
    assert "host node1 is unreachable" in environment.run("status").stdout
    environment.wait_for_work("one")
    assert serve.poll() is None
    known.write_text(hosts.known_hosts.read_text())
    environment.wait_until_host("node1", "ready")
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
    environment.check_run("one")
    environment.check_nothing_shared()


@pytest.mark.parametrize("copied", [False, pytest.param(True, marks=pytest.mark.fault)])
def test_an_image_is_another_host(environment: Environment, hosts: Lab, copied: bool) -> None:
    """Installed again without its state, or with its disk in another machine: its old jobs are lost."""
    serve = environment.serve(environment.fleet("node1"), environment.job("one", RETRY))
    environment.wait_for_start("one")
    before = environment.install_id("node1")
    hosts.kill("node1")
    try:
        environment.wait_until_host("node1", "unreachable")
        if copied:
            (environment.disk("node1").parent / "etc/machine-id").write_text(
                f"{uuid.uuid4().hex}\n"
            )
        else:
            shutil.rmtree(environment.disk("node1") / ".local/state/fleetform")
        booted = time.time()
    finally:
        hosts.start("node1")
    assert environment.wait_for_start("one", attempt=2).at > booted
    environment.open_gate("one")
    environment.wait_for_done(serve, "one")
    assert environment.install_id("node1") != before
    environment.check_run("one", attempts=2)
    environment.check_nothing_shared()
    events = environment.run("events", "one").stdout
    assert "lost: host node1 was installed again" in events


def test_environments_share_a_host_and_nothing_else(
    environment: Environment, hosts: Lab, tmp_path: Path
) -> None:
    """Neither sees the jobs of the other, and the end of one leaves the other alone."""
    other = Environment(tmp_path / "second", hosts)
    try:
        apply = environment.apply(environment.fleet("node1"), environment.job("one"))
        second = other.apply(other.fleet("node1"), other.job("two"))
        environment.wait_for_start("one")
        other.wait_for_start("two")
        assert environment.states() == {"one": "running"}
        assert other.states() == {"two": "running"}
        environment.open_gate("one")
        wait_for_exit(environment, apply)
        done = environment.run("destroy", "-y", "--allow-destroy")
        assert done.returncode == 0, done.stdout + done.stderr
        assert not environment.agent("node1").exists()
        other.wait_for_work("two")
        assert other.host_states() == {"node1": "ready"}
        other.open_gate("two")
        wait_for_exit(other, second)
        environment.check_run("one")
        other.check_run("two")
        other.check_nothing_shared()
    finally:
        other.close()


_NVIDIA_SMI = """\
#!/bin/sh
for n in 0 1 2 3; do
    case $1 in
    *compute-apps*) ;;
    *driver_version*) echo "550.54, A100, 81920, $n, GPU-a$n" ;;
    *) echo "$n, GPU-a$n, A100, 81920" ;;
    esac
done
"""
_SHARE = """\
type: fleet
name: lab
run_as: root
ssh_config:
  user: root
  hosts:
    - {{hostname: node1, capacity: {{cpu: 1, memory: 1GB, devices: {}}}}}
"""


def test_environments_divide_the_gpus_of_a_host(
    environment: Environment, hosts: Lab, tmp_path: Path
) -> None:
    """No idle GPU of the other is allotted, and none replaces a declared one that is missing."""
    other = Environment(tmp_path / "second", hosts)
    folder = "/usr/local/sbin"
    hosts.run("node1", "mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", folder)
    hosts.run("node1", "sh", "-c", f"echo '{_NVIDIA_SMI}' > {folder}/nvidia-smi")
    hosts.run("node1", "chmod", "755", f"{folder}/nvidia-smi")

    def start(where: Environment, name: str, devices: str, gpus: int) -> Callable[[], str]:
        """Start a job; returns what ends it and says which GPUs it saw."""
        more = f"resources: {{gpu: {gpus}}}\n"
        apply = where.apply(_SHARE.format(devices), where.job(name, more))
        where.wait_for_start(name)

        def end() -> str:
            seen = where.run("exec", name, "--", "printenv", "CUDA_VISIBLE_DEVICES").stdout
            where.open_gate(name)
            wait_for_exit(where, apply)
            where.check_run(name)
            return seen.strip()

        return end

    try:
        end_one = start(environment, "one", "[0, 2]", 2)
        end_two = start(other, "two", "[GPU-a3, 1]", 2)
        assert (end_one(), end_two()) == ("GPU-a0,GPU-a2", "GPU-a1,GPU-a3")
        assert start(other, "three", "[3, 7]", 1)() == "GPU-a3"
        (host,) = other.json("fleet", "show", "lab")["instances"]
        assert (host["capacity"]["gpus"], host["state"]) == (1, "ready")
        assert host["message"] == "the host has no GPU 7, which `devices` declares"
        checked = other.run("fleet", "check")
        assert (checked.returncode, host["message"] in checked.stdout) == (1, True), checked.stdout
        assert environment.run("fleet", "check").returncode == 0
    finally:
        hosts.run("node1", "umount", "-l", folder)
        other.close()


def test_a_full_disk_of_a_host_loses_nothing(environment: Environment, hosts: Lab) -> None:
    """A job that runs ends with its exit code; the next one is tried again until it starts."""
    small = "resources: {cpu: 1.., memory: 1MB.., disk: 1MB..}\n"
    folder = "/root/.local/state/fleetform"
    hosts.run("node1", "mkdir", "-p", folder)
    hosts.run("node1", "mount", "-t", "tmpfs", "-o", "size=40m,mode=700", "tmpfs", folder)
    try:
        apply = environment.apply(
            environment.fleet("node1"),
            environment.job("first", small),
            environment.job("second", small),
        )
        environment.wait_for_start("first")
        hosts.run("node1", "sh", "-c", f"cat /dev/zero > {folder}/full", check=False)
        environment.open_gate("first")
        environment.wait_until_printed("events", "second", text="No space left on device")
        hosts.run("node1", "rm", f"{folder}/full")
        environment.wait_for_work("second")
        environment.open_gate("second")
        wait_for_exit(environment, apply)
        assert environment.states() == {"first": "done", "second": "done"}
        assert environment.ends("first") == [(1, 0)]
        assert [one.word for one in environment.witnesses("second") if one.word != "works"] == [
            "start",
            "end",
        ]
        environment.check_nothing_shared()
    finally:
        hosts.run("node1", "umount", "-l", folder)


def test_a_gang_that_loses_a_host_is_stopped_and_tried_again_whole(
    environment: Environment, hosts: Lab
) -> None:
    """The other rank goes on until the loss is proven; then it is stopped, and both start again."""
    serve = environment.serve(
        environment.fleet("node1", "node2"), environment.job("gang", f"nodes: 2\n{RETRY}")
    )
    host = environment.wait_for_start("gang", rank=1).host
    environment.wait_for_start("gang", rank=0)
    hosts.kill(host)
    try:
        environment.wait_until_host(host, "unreachable")
        environment.wait_for_work("gang", rank=0)
        assert environment.starts("gang") == [(1, 0), (1, 1)]
        booted = time.time()
    finally:
        hosts.start(host)
    for rank in range(2):
        assert environment.wait_for_start("gang", attempt=2, rank=rank).at > booted
    environment.open_gate("gang")
    environment.wait_for_done(serve, "gang")
    environment.check_run("gang", attempts=2, ranks=2)
    environment.check_nothing_shared()
