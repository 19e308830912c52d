"""The hosts of environments/lab, over real SSH."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lab import PATIENCE_SECONDS, PROGRAM, Lab, lab
from leftovers import processes_naming


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    with lab(tmp_path_factory.mktemp("lab"), hosts=2) as running:
        yield running


@pytest.fixture
def own(tmp_path):
    """A lab that the test may end."""
    with lab(tmp_path, hosts=1) as running:
        yield running


def boot_id(hosts: Lab, host: str) -> str:
    return hosts.ssh(host, "cat /proc/sys/kernel/random/boot_id").stdout.strip()


def is_reachable(hosts: Lab, host: str) -> bool:
    done = hosts.ssh(host, "true", options=("-oConnectTimeout=2",), check=False)
    assert done.returncode in {0, 255}
    return done.returncode == 0


def links() -> set[str]:
    listed = subprocess.run(["ip", "-json", "link"], capture_output=True, text=True, check=True)
    return {link["ifname"] for link in json.loads(listed.stdout)}


def namespaces() -> set[str]:
    folder = Path("/run/netns")
    return {path.name for path in folder.iterdir()} if folder.exists() else set()


def has_ended(pid: int) -> bool:
    """Tell whether a process is gone, or a zombie that this machine's own process 1 will reap."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def names(record) -> set[str]:
    return {record["switch"], *(host["namespace"] for host in record["hosts"].values())}


def test_the_fleet_has_the_hosts_of_the_lab():
    """`fleet.yaml` names the hosts that `make lab` starts."""
    fleet = yaml.safe_load((PROGRAM.parent / "fleet.yaml").read_text())
    hosts = (PROGRAM.parent / "hosts.py").read_text()
    number = int(re.search(r"^HOSTS = (\d+)$", hosts, re.MULTILINE)[1])
    assert fleet["ssh_config"]["hosts"] == [f"node{one}" for one in range(1, number + 1)]


def test_hosts_have_identities_of_their_own(hosts):
    """Two hosts and this machine differ in host name, boot id and machine id."""
    ids = {
        "boot_id": {Path("/proc/sys/kernel/random/boot_id").read_text().strip()},
        "machine_id": {Path("/etc/machine-id").read_text().strip()},
    }
    for host, address in hosts.hosts.items():
        told = hosts.ssh(
            host, "hostname; cat /proc/sys/kernel/random/boot_id /etc/machine-id; hostname -I"
        )
        name, boot, machine, addresses = told.stdout.splitlines()
        assert (name, addresses.split()) == (host, [address])
        assert str(uuid.UUID(boot)) == boot
        ids["boot_id"].add(boot)
        ids["machine_id"].add(machine)
    assert {kind: len(values) for kind, values in ids.items()} == {"boot_id": 3, "machine_id": 3}


def test_a_person_knows_the_hosts_by_name_until_the_lab_ends(own, tmp_path, monkeypatch):
    """`up --include` puts one line before those of `~/.ssh/config`, and `down` leaves them alone."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    file, theirs = tmp_path / "home/.ssh/config", "Host other\n    Port 2222"
    own.call("up", "--include")
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.stat().st_mode & 0o777 == 0o600
    signed_in = ["ssh", "-F", str(file), "-oBatchMode=yes", "node1", "hostname"]
    assert subprocess.run(signed_in, capture_output=True, check=True).stdout == b"node1\n"
    file.write_text(file.read_text() + theirs)
    own.call("up", "--include")
    assert file.read_text().count("Include") == 1
    own.call("down")
    assert file.read_text() == theirs


@pytest.mark.parametrize(("user", "home"), [("root", "/root"), ("lab", "/home/lab")])
def test_root_and_a_plain_user_sign_in(hosts, user, home):
    """Both have an empty home that they can write to, and only processes of the host."""
    told = hosts.ssh(
        f"{user}@node1", "id -un; pwd; touch file && rm file; ls -A; ls -d /proc/[0-9]*"
    )
    name, folder, *rest = told.stdout.splitlines()
    assert (name, folder) == (user, home)
    assert all(line.startswith("/proc/") for line in rest)
    assert len(rest) < 10


def test_the_host_key_is_checked(hosts, tmp_path):
    """A host with another key than the known one is refused; `rekey` gives a host a new key."""
    before = tmp_path / "known_hosts"
    before.write_text(hosts.known_hosts.read_text())
    hosts.rekey("node1")
    assert hosts.ssh("node1", "true").returncode == 0
    refused = hosts.ssh("node1", "true", options=(f"-oUserKnownHostsFile={before}",), check=False)
    assert refused.returncode == 255
    assert "Host key verification failed" in refused.stderr


def test_hosts_see_each_other_and_nothing_of_this_machine(hosts):
    """A host resolves and reaches its peer; the folders of this machine are hidden or read-only."""
    reached = hosts.run("node1", "ssh-keyscan", "-t", "ed25519", "node2")
    assert reached.split()[2] in hosts.known_hosts.read_text()
    assert hosts.run("node1", "ls", "-A", "/tmp") == ""
    assert hosts.ssh("node1", "test -e", str(Path(__file__)), check=False).returncode == 1
    assert hosts.ssh("node1", "touch /usr/file", check=False).returncode == 1
    assert hosts.ssh("node1", "ip route get 192.0.2.1", check=False).returncode != 0


def test_a_power_cut_ends_all_and_keeps_the_disk(hosts):
    """After `kill` and `start` there are a new boot id, the same key and files, and no old process."""
    first = boot_id(hosts, "node1")
    known = hosts.known_hosts.read_text()
    kept = [f"{folder}/file" for folder in ("/root", "/home/lab", "/var/lib", "/etc", "/srv")]
    hosts.run("node1", "sh", "-c", f"echo kept | tee {' '.join(kept)}; echo lost >/run/file")
    hosts.ssh("node1", "setsid sleep 1234 </dev/null >/dev/null 2>&1 &")

    hosts.kill("node1")
    assert not is_reachable(hosts, "node1")
    hosts.start("node1")

    assert boot_id(hosts, "node1") != first
    assert hosts.known_hosts.read_text() == known
    assert hosts.run("node1", "cat", *kept) == "kept\n" * len(kept)
    assert hosts.ssh("node1", "test -e /run/file", check=False).returncode == 1
    assert hosts.ssh("node1", "pgrep -f 'sleep [1]234'", check=False).returncode == 1


def test_a_power_cut_is_silent(hosts):
    """The peer of a connection is told of no end when the power of a host is cut."""
    client = subprocess.Popen(
        ["ssh", "-F", hosts.config, "node2", "echo ready; sleep 1000"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert client.stdout.readline() == "ready\n"
        hosts.kill("node2")
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(timeout=1)
    finally:
        client.kill()
        client.wait()
        client.stdout.close()
        hosts.start("node2")


def test_a_host_whose_process_1_was_killed_boots_again(hosts):
    """Whoever kills process 1 cuts the power, and `up` boots what is off."""
    first = boot_id(hosts, "node1")
    os.kill(hosts.init_pid("node1"), signal.SIGKILL)
    hosts.up()
    assert boot_id(hosts, "node1") != first


def test_a_host_that_is_cut_off_goes_on(hosts):
    """`cut` makes a host unreachable, its processes stay, and `join` brings it back."""
    first = boot_id(hosts, "node2")
    hosts.cut("node2")
    assert not is_reachable(hosts, "node2")
    assert hosts.run("node2", "cat", "/proc/sys/kernel/random/boot_id").strip() == first
    hosts.join("node2")
    assert boot_id(hosts, "node2") == first


def test_control_groups_of_a_host_go_with_it(own):
    """A host has the root of each tree of groups for itself, and a power cut removes what is in it."""
    groups = [Path(group) for group in own.record["hosts"]["node1"]["cgroups"]]
    told = own.ssh("node1", "cat /proc/self/cgroup").stdout.splitlines()
    if groups:
        assert {line.rpartition(":")[2] for line in told} <= {"/", "/init"}
        assert told == own.run("node1", "cat", "/proc/self/cgroup").splitlines()
        make = "for tree in $(mount -t cgroup,cgroup2 | cut -d' ' -f3); do mkdir $tree/job; done"
        own.run("node1", "sh", "-c", make)
        assert all((group / "job").is_dir() for group in groups)
    own.kill("node1")
    assert not [group for group in groups if group.exists()]


def test_run_has_the_exit_code_of_the_command(hosts):
    """What `run` is asked is words, not text for a shell, and its end is that of the command."""
    done = hosts.call("run", "node1", "sh", "-c", 'echo "$1"; exit 7', "sh", "a  b", check=False)
    assert (done.stdout, done.returncode) == ("a  b\n", 7)


def test_down_leaves_nothing_and_can_be_repeated(own, tmp_path):
    """No process, namespace or link stays, twice in a row; disks and keys are there on the next up."""
    for _ in range(2):
        record = own.record
        own.run("node1", "sh", "-c", "echo more >>/root/file")
        assert names(record) <= namespaces()
        assert record["link"] in links()
        own.down()
        assert not processes_naming(own.directory)
        assert not names(record) & namespaces()
        assert record["link"] not in links()
        groups = [group for host in record["hosts"].values() for group in host["cgroups"]]
        assert not list(filter(os.path.exists, groups))
        own.down()
        known = own.known_hosts.read_text().split()[1:]
        own.up()
        assert own.known_hosts.read_text().split()[1:] == known
    assert own.run("node1", "cat", "/root/file") == "more\nmore\n"


def test_down_works_after_kill_9_of_what_holds_a_host(own):
    """A host ends with the process outside of it that waits for its process 1."""
    record = own.record
    outer, inner = (pid for pid, _ in record["hosts"]["node1"]["processes"])
    os.kill(outer, signal.SIGKILL)
    own.down()
    assert has_ended(inner)
    assert not names(record) & namespaces()


@pytest.mark.parametrize("processes", [None, 0, 1, 2])
def test_down_works_after_kill_9_of_up(hosts, tmp_path, processes):
    """An `up` that dies at any stage of a boot leaves nothing that `down` does not remove."""
    own = Lab(tmp_path, 1)
    network = ("--hosts", "1", "--network", f"10.127.{os.getpid() % 256}.0/24")
    starting = subprocess.Popen(own.command("up", *network), stdout=subprocess.DEVNULL)
    record = {}

    def has_come_so_far() -> bool:
        with contextlib.suppress(FileNotFoundError):
            record.update(own.record)
        if processes is None or not record:
            return bool(record)
        return record["complete"] and len(record["hosts"]["node1"]["processes"]) >= processes

    try:
        wait_for(lambda: has_come_so_far() or starting.poll() is not None)
    finally:
        starting.kill()
        starting.wait()
        own.down()
    assert record
    assert not names(record) & namespaces()
    assert record["link"] not in links()
    # What had begun and was not written down yet ends by itself.
    wait_for(lambda: not processes_naming(own.directory))


def test_labs_live_side_by_side(hosts, own):
    """The end of one lab leaves the other one as it is, and a network belongs to one of them."""
    taken = own.call("up", "--network", hosts.record["network"], check=False)
    assert "run `lab.py down` first" in taken.stderr
    own.down()
    taken = own.call("up", "--network", hosts.record["network"], check=False)
    assert taken.returncode == 3
    assert "in use" in taken.stderr
    assert hosts.ssh("node1", "true").returncode == 0


def test_a_host_is_added_with_files_and_removed(own: Lab, tmp_path: Path):
    """It runs the commands in its files before its SSH server; nothing of it is left at the end."""
    script = tmp_path / "files/etc/rc.local"
    script.parent.mkdir(parents=True)
    script.write_text("#!/bin/sh\nhostname >/run/booted\n")
    script.chmod(0o755)
    mark = own.record["switch"].removesuffix("switch")
    before = {one for one in namespaces() if one.startswith(mark)}
    address = own.hosts["node1"].rpartition(".")[0] + ".99"
    own.call("add", "extra", "--address", address, "--files", str(tmp_path / "files"))
    wait_for(lambda: own.run("extra", "cat", "/run/booted", check=False) == "extra\n")
    assert own.hosts["extra"] == address
    pid = own.init_pid("extra")
    own.call("remove", "extra")
    assert has_ended(pid)
    # Other labs come and go meanwhile.
    assert {one for one in namespaces() if one.startswith(mark)} == before
    assert "extra" not in own.hosts
    assert not (own.directory / "hosts/extra").exists()
