#!/usr/bin/env python3
"""
Four SSH hosts on this machine, to try fleetform and to test it.

A host is a network namespace and a process 1 in namespaces of its own: `sshd`. It has its own host
name, machine id, boot id, users and process ids, and folders of its own wherever a job may write.
The programs in /usr are those of this machine, read-only. The hosts share a switch, which is a
bridge in a namespace of its own, so that no firewall of this machine is between two hosts. One link
leads from the switch to this machine. No host has a route to anything else.

Whoever kills process 1 cuts the power: the kernel kills everything else in that host.

With `--machines N` the lab has also whole machines, with systemd and files of their own: see
`machines`.

All names and process ids are in `lab.json`, and are written there before the thing itself is made.
`down` removes what is written there, so it works after any command was killed at any moment.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import ipaddress
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import cgroups
import ssh_include

import machines

DIRECTORY = Path(__file__).resolve().parent / ".lab"
BOOT = Path(__file__).resolve().with_name("boot.sh")
BOOT_MACHINE = Path(__file__).resolve().with_name("machine.sh")
NETWORK = "10.213.7.0/24"
HOSTS = 4
HOSTS_MAX = 100
FIRST_ADDRESS = 10
"""node1 is .11 and node4 is .14; .1 is this machine."""

MACHINES_MAX = 20
FIRST_MACHINE = 200
"""machine1 is .201: after the most hosts."""

PLAIN_USER = "lab"
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAMESPACES = Path("/run/netns")
MACHINE_LOCK = Path("/run/fleetform-lab.lock")
"""Held while a network is chosen: two labs that begin at once would take the same one."""

PROGRAMS = {
    "ip": "iproute2",
    "nsenter": "util-linux",
    "ssh-keygen": "openssh-client",
    "ssh-keyscan": "openssh-client",
    "sshd": "openssh-server",
    "unshare": "util-linux",
}
PATIENCE_SECONDS = 30.0
MACHINE_SECONDS = 240.0
"""A machine answers after 10 to 20 s; two that boot on one busy processor take several times as long."""

NETWORK_IN_USE = 3
"""The exit code for a network that this machine already has: tests then try another one."""

SSHD_CONFIG = """\
ListenAddress 0.0.0.0
AuthorizedKeysFile .ssh/authorized_keys /etc/ssh/lab_keys
HostKey /etc/ssh/ssh_host_ed25519_key
PidFile none
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
"""


class LabError(Exception):
    """What is wrong, and the next command."""

    code = 1


class NetworkInUseError(LabError):
    code = NETWORK_IN_USE


# -- processes ----------------------------------------------------------------------------------


class Process(NamedTuple):
    """A process, by its id and the moment it began: an id alone may belong to another one later."""

    pid: int
    began: int
    """In clock ticks since the machine booted."""


def read_process(pid: int) -> tuple[Process, str, int] | None:
    """Return a process with its state and its parent; None when there is no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    # The name is in brackets and may itself have any of these characters: proc(5).
    fields = text.rpartition(")")[2].split()
    return Process(pid, int(fields[19])), fields[0], int(fields[1])


def is_alive(process: Process) -> bool:
    found = read_process(process.pid)
    return found is not None and found[0] == process and found[1] not in "ZX"


def find_child(parent: Process) -> Process | None:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            found = read_process(int(path.name))
            if found is not None and found[2] == parent.pid:
                return found[0]
    return None


def end(process: Process) -> None:
    """Kill a process; returns when it is not alive."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # The descriptor stays with one process, so what is checked now is what is killed.
            if is_alive(process):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
    wait_for(lambda: not is_alive(process), f"process {process.pid} does not end")


def wait_for(
    condition: Callable[[], object], failure: str, *, seconds: float = PATIENCE_SECONDS
) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise LabError(f"{failure} within {seconds:.0f} s")
        time.sleep(0.005)


def try_call(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


def call(*words: str) -> str:
    done = try_call(*words)
    if done.returncode:
        raise LabError(f"`{' '.join(words)}` failed:\n{done.stderr.strip()}")
    return done.stdout


# -- the lab ------------------------------------------------------------------------------------


class Lab:
    """A folder with the record of a lab, the disks of its hosts, and the files for SSH clients."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.resolve()
        self.record: dict[str, Any] = {}
        with contextlib.suppress(FileNotFoundError):
            self.record = json.loads((self.directory / "lab.json").read_text())

    @property
    def hosts(self) -> dict[str, dict[str, Any]]:
        hosts: dict[str, dict[str, Any]] = self.record.get("hosts", {})
        return hosts

    def host(self, name: str) -> dict[str, Any]:
        if name not in self.hosts:
            known = f"its hosts are {', '.join(self.hosts)}" if self.hosts else "run `lab.py up`"
            raise LabError(f"the lab in {self.directory} has no host {name}; {known}")
        return self.hosts[name]

    def disk(self, name: str) -> Path:
        return self.directory / "hosts" / name

    def is_current(self) -> bool:
        """Tell whether the machine is still the one, since its boot, that the record is about."""
        return self.record.get("machine") == machine_boot_id()

    def processes(self, name: str) -> list[Process]:
        """Return the recorded processes of a host: the one that waits for process 1, and that."""
        if not self.is_current():
            return []
        return [Process(*pair) for pair in self.hosts[name]["processes"]]

    def is_running(self, name: str) -> bool:
        processes = self.processes(name)
        return len(processes) == 2 and all(map(is_alive, processes))

    def save(self) -> None:
        new = self.directory / "lab.json.new"
        new.write_text(json.dumps(self.record, indent=2) + "\n")
        new.replace(self.directory / "lab.json")

    # -- up and down

    def up(self, count: int | None, whole: int | None, network: str | None) -> None:
        if self.record and not (self.is_current() and self.record["complete"]):
            self.down()
        if not self.record:
            if count is None:
                count = 0 if whole else HOSTS
            self._make_network(count, whole or 0, ipaddress.IPv4Network(network or NETWORK))
        else:
            self._refuse_other(count, whole, network)
        self._make_client_key()
        off = [name for name in self.hosts if not self.is_running(name)]
        for name in off:
            self._make_disk(name)
        self.write_client_files()
        for name in off:
            self._power_on(name)
        for name in off:
            self._wait_until_up(name)

    @property
    def client_config(self) -> Path:
        return self.directory / "ssh/config"

    def include(self) -> None:
        """Have `ssh` and fleetform of the person who asked for the lab know its hosts."""
        file = ssh_include.personal_config()
        self.record["included_in"] = str(file)
        self.save()
        if ssh_include.add(file, self.client_config):
            print(f"\n{file} now begins with `Include`, until `make lab-down`.")

    def _refuse_other(self, count: int | None, whole: int | None, network: str | None) -> None:
        """Refuse to make another lab of one that is there."""
        kinds = [host["kind"] for host in self.hosts.values()]
        hosts, others = kinds.count("node"), len(kinds) - kinds.count("node")
        if (
            (hosts if count is None else count) != hosts
            or (others if whole is None else whole) != others
            or (network or self.record["network"]) != self.record["network"]
        ):
            machines_too = f" and {others} machines" if others else ""
            raise LabError(
                f"the lab in {self.directory} has {hosts} hosts{machines_too} in"
                f" {self.record['network']}; run `lab.py down` first"
            )

    def down(self) -> None:
        if not self.record:
            return
        for name in self.hosts:
            self.power_off(name)
        if "included_in" in self.record:
            ssh_include.remove(Path(self.record["included_in"]), self.client_config)
        delete_link(self.record["link"])
        delete_namespace(self.record["switch"])
        (self.directory / "lab.json").unlink()
        self.record = {}

    def _make_network(self, count: int, whole: int, network: ipaddress.IPv4Network) -> None:
        last = FIRST_MACHINE + whole if whole else FIRST_ADDRESS + count
        if network.num_addresses < last + 2:
            raise LabError(f"the network {network} is too small for its hosts; use a /24")
        numbers = [("node", FIRST_ADDRESS, number) for number in range(1, count + 1)]
        kind = machines.choose_kind() if whole else ""
        numbers += [(kind, FIRST_MACHINE, number) for number in range(1, whole + 1)]
        with locked(MACHINE_LOCK):
            refuse_used(network)
            prefix = choose_prefix()
            self.record = {
                "machine": machine_boot_id(),
                "complete": False,
                "network": str(network),
                "address": str(network[1]),
                "link": f"{prefix}-up",
                "switch": f"{prefix}-switch",
                "hosts": {
                    f"{'node' if kind == 'node' else 'machine'}{number}": new_host(
                        kind,
                        str(network[first + number]),
                        f"{prefix}-{'node' if kind == 'node' else 'm'}{number}",
                    )
                    for kind, first, number in numbers
                },
            }
            self.save()
            switch, link = self.record["switch"], self.record["link"]
            call("ip", "netns", "add", switch)
            call("ip", "-n", switch, "link", "add", "switch", "type", "bridge")
            call("ip", "-n", switch, "link", "set", "dev", "switch", "up")
            call("ip", "link", "add", link, "type", "veth", "peer", "name", "up", "netns", switch)
            call("ip", "-n", switch, "link", "set", "dev", "up", "master", "switch", "up")
            call("ip", "address", "add", f"{network[1]}/{network.prefixlen}", "dev", link)
            call("ip", "link", "set", "dev", link, "up")
        self.record["complete"] = True
        self.save()

    def add(self, name: str, address: str, files: Path | None) -> None:
        """
        Boot one more host, for a test that starts and ends hosts; returns before it answers.

        What is in `files` lies on its disk before it boots. Its keys are not in the files for SSH
        clients: `files` may let it choose others.
        """
        if name in self.hosts:
            raise LabError(f"the lab in {self.directory} has a host {name} already")
        prefix = self.record["link"].removesuffix("-up")
        self.record["hosts"][name] = new_host("node", address, f"{prefix}-{name}")
        self.save()
        self._make_disk(name)
        if files is not None:
            call("cp", "-a", f"{files}/.", str(self.disk(name) / "root"))
        self._power_on(name)

    def remove(self, name: str) -> None:
        """End a host, and delete its disk."""
        self.power_off(name)
        shutil.rmtree(self.disk(name), ignore_errors=True)
        del self.record["hosts"][name]
        self.save()

    # -- one host

    def power_on(self, name: str) -> None:
        if not self.is_running(name):
            self._make_disk(name)
            self._power_on(name)
            self._wait_until_up(name)

    def power_off(self, name: str) -> None:
        """
        Cut the power: peers hear nothing more of the host, not even the end of a connection.

        The kernel would close the connections of killed processes, so the link goes first; and it
        would answer for the host from its namespace, so that goes too.
        """
        host = self.host(name)
        if self.is_current() and (NAMESPACES / self.record["switch"]).exists():
            delete_link(name, self.record["switch"])
        processes = self.processes(name)
        if len(processes) == 2:
            end(processes[1])
            # The other one waits for process 1, and ends by itself: killed, it leaves a zombie.
            with contextlib.suppress(LabError):
                wait_for(lambda: not is_alive(processes[0]), "", seconds=2)
        if processes:
            end(processes[0])
        delete_namespace(host["namespace"])
        if self.is_current():
            for group in map(Path, host["cgroups"]):
                wait_for(partial(cgroups.remove, group), f"{group} cannot be removed")
        host["cgroups"] = []
        host["processes"] = []
        self.save()

    def set_cut(self, name: str, cut: bool) -> None:
        host = self.host(name)
        host["cut"] = cut
        self.save()
        if self.is_running(name):
            self._set_port(name)

    def rekey(self, name: str) -> None:
        host = self.host(name)
        make_key(self.disk(name) / "root/etc/ssh/ssh_host_ed25519_key")
        self.write_client_files()
        if not self.is_running(name):
            return
        if self.host(name)["kind"] != "node":
            raise LabError(f"{name} is running; kill it, then rekey and start it")
        # It starts anew as the same process, and reads its keys (sshd(8)).
        os.kill(self.processes(name)[1].pid, signal.SIGHUP)
        expected = self._host_key(name)
        scan = ["nsenter", f"--net={NAMESPACES / host['namespace']}"]
        scan += ["ssh-keyscan", "-t", "ed25519", "127.0.0.1"]
        wait_for(lambda: expected in try_call(*scan).stdout, f"{name} does not show its new key")

    def run(self, name: str, command: list[str]) -> None:
        """Become a command in a host: its exit code is that of this program."""
        host = self.host(name)
        if not self.is_running(name):
            raise LabError(f"{name} is off; run `lab.py start {name}`")
        if host["kind"] != "node":
            # A kernel of its own lets nobody in but through its SSH server.
            config = str(self.directory / "ssh/config")
            os.execvp("ssh", ["ssh", "-F", config, "-oBatchMode=yes", name, shlex.join(command)])
        cgroups.join(cgroups.for_processes(Path(group) for group in host["cgroups"]))
        # A shell in the host, because its HOME is not the folder that has that path here.
        words = ["nsenter", f"--target={self.processes(name)[1].pid}"]
        words += ["--net", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "--"]
        words += ["env", "-i", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/sh"]
        words += [f"PATH={SYSTEM_PATH}", "LANG=C.UTF-8", "sh", "-c", 'cd && exec "$@"', "sh"]
        os.execvp(words[0], [*words, *command])

    def _power_on(self, name: str) -> None:
        self.power_off(name)
        host, disk = self.host(name), self.disk(name)
        namespace, switch = host["namespace"], self.record["switch"]
        length = ipaddress.IPv4Network(self.record["network"]).prefixlen
        if host["kind"] != "node":
            self._power_on_machine(name)
            return
        call("ip", "netns", "add", namespace)
        call("ip", "-n", switch, "link", "add", name, "type", "veth",
             "peer", "name", "eth0", "address", host["mac"], "netns", namespace)  # fmt: skip
        call("ip", "-n", switch, "link", "set", "dev", name, "master", "switch")
        self._set_port(name)
        call("ip", "-n", namespace, "link", "set", "lo", "up")
        call("ip", "-n", namespace, "address", "add", f"{host['address']}/{length}", "dev", "eth0")
        call("ip", "-n", namespace, "link", "set", "eth0", "up")
        hierarchies = cgroups.find_hierarchies()
        groups = [hierarchy.parent / namespace for hierarchy in hierarchies]
        host["cgroups"] = list(map(str, groups))
        self.save()
        cgroups.make(groups)
        mounts = [
            word
            for hierarchy in hierarchies
            for word in (hierarchy.kind, hierarchy.options, str(hierarchy.mountpoint))
        ]
        (disk / "boot_id").write_text(f"{uuid.uuid4()}\n")
        (disk / "boot_id").chmod(0o444)
        with (disk / "log").open("ab") as log:
            started = subprocess.Popen(
                ["nsenter", f"--net={NAMESPACES / namespace}",
                 "unshare", "--pid", "--mount", "--uts", "--ipc", "--cgroup", "--fork",
                 "--kill-child", "--mount-proc",
                 "sh", str(BOOT), str(disk), name, find_program("sshd"), *mounts],
                cwd="/",
                env={"PATH": SYSTEM_PATH},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                # Its groups of the moment in which `unshare` begins are the roots that it sees.
                preexec_fn=lambda: cgroups.join(groups),  # noqa: PLW1509 -- there are no threads
            )  # fmt: skip
        assert started.stdin is not None
        with started.stdin:
            outer = read_process(started.pid)
            assert outer is not None, "it is our child"
            host["processes"] = [outer[0]]
            self.save()
            wait_for(
                lambda: find_child(outer[0]) or started.poll() is not None,
                f"{name} does not boot; see {disk / 'log'}",
            )
            inner = find_child(outer[0])
            if inner is None:
                raise self._boot_error(name)
            host["processes"].append(inner)
            self.save()
            for hierarchy, group in zip(hierarchies, groups, strict=True):
                if hierarchy.kind == "cgroup2":
                    cgroups.delegate(group, (outer[0].pid, inner.pid))
            # If this program dies before, the host reads an end, and ends.
            with contextlib.suppress(BrokenPipeError):
                started.stdin.write(b"\n")
                started.stdin.flush()

    def _power_on_machine(self, name: str) -> None:
        host, disk = self.host(name), self.disk(name)
        namespace, switch = host["namespace"], self.record["switch"]
        at = self._machine_address(name)
        if host["kind"] == "uml":
            call("ip", "-n", switch, "tuntap", "add", "dev", name, "mode", "tap")
        else:
            call("ip", "netns", "add", namespace)
            call("ip", "-n", switch, "link", "add", name, "type", "veth",
                 "peer", "name", "eth0", "address", at.mac, "netns", namespace)  # fmt: skip
            call("ip", "-n", namespace, "link", "set", "lo", "up")
            place = f"{at.address}/{at.length}"
            call("ip", "-n", namespace, "address", "add", place, "dev", "eth0")
            call("ip", "-n", namespace, "link", "set", "eth0", "up")
        call("ip", "-n", switch, "link", "set", "dev", name, "master", "switch")
        self._set_port(name)
        words = machines.boot_words(host["kind"], name, namespace, disk, at)
        words[0] = shutil.which(words[0]) or words[0]
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        if host["kind"] == "uml":
            # The link of a machine is opened by its name, where the switch is.
            command = ["nsenter", f"--net={NAMESPACES / switch}", *command]
        else:
            # The container has process ids of its own, and its process 1 is a child of this one.
            command = ["unshare", "--mount"]
        with (disk / "log").open("ab") as log:
            started = subprocess.Popen(
                [
                    *command,
                    "sh",
                    str(BOOT_MACHINE),
                    host["kind"],
                    str(disk),
                    str(machines.install_root()),
                    *words,
                ],
                cwd="/",
                env={"PATH": SYSTEM_PATH},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._record_processes(name, started, waits=host["kind"] != "uml")

    def _record_processes(
        self, name: str, started: subprocess.Popen[bytes], *, waits: bool
    ) -> None:
        """
        Write down the two processes of a machine, and let it boot.

        With `waits` the second one exists only once the machine boots.
        """
        host = self.host(name)
        assert started.stdin is not None
        with started.stdin:
            outer = read_process(started.pid)
            assert outer is not None, "it is our child"
            host["processes"] = [outer[0]]
            self.save()
            if not waits:
                self._record_inner(name, outer[0], started)
            # If this program dies before, the machine reads an end, and ends.
            with contextlib.suppress(BrokenPipeError):
                started.stdin.write(b"\n")
                started.stdin.flush()
        if waits:
            self._record_inner(name, outer[0], started)

    def _record_inner(self, name: str, outer: Process, started: subprocess.Popen[bytes]) -> None:
        wait_for(
            lambda: find_child(outer) or started.poll() is not None,
            f"{name} does not boot; see {self.disk(name) / 'log'}",
        )
        inner = find_child(outer)
        if inner is None:
            raise self._boot_error(name)
        self.host(name)["processes"].append(inner)
        self.save()

    def _machine_address(self, name: str) -> machines.Address:
        host = self.host(name)
        length = ipaddress.IPv4Network(self.record["network"]).prefixlen
        return machines.Address(host["address"], length, host["mac"])

    def _wait_until_machine_is_up(self, name: str) -> None:
        """Wait for the host key: sshd has it once systemd has started everything before."""
        host, inner = self.host(name), self.processes(name)[1]
        if host["cut"]:
            return
        expected = self._host_key(name)
        scan = ["ssh-keyscan", "-T", "2", "-t", "ed25519", host["address"]]

        def is_up() -> bool:
            if not is_alive(inner):
                raise self._boot_error(name)
            return expected in try_call(*scan).stdout

        failure = f"{name} does not answer on port 22; see {self.disk(name) / 'log'}"
        wait_for(is_up, failure, seconds=MACHINE_SECONDS)

    def _wait_until_up(self, name: str) -> None:
        if self.host(name)["kind"] != "node":
            self._wait_until_machine_is_up(name)
            return
        inner = self.processes(name)[1]

        def is_up() -> bool:
            if not is_alive(inner):
                raise self._boot_error(name)
            lines = Path(f"/proc/{inner.pid}/net/tcp").read_text().splitlines()
            # Port 22 and the state "listening", in the notation of proc_net_tcp.
            return any(":0016 00000000:0000 0A" in line for line in lines)

        # Commands of its own come first, and take as long as they do.
        has_commands = (self.disk(name) / "root/etc/rc.local").exists()
        wait_for(
            is_up,
            f"{name} does not listen on port 22; see {self.disk(name) / 'log'}",
            seconds=MACHINE_SECONDS if has_commands else PATIENCE_SECONDS,
        )

    def _boot_error(self, name: str) -> LabError:
        log = self.disk(name) / "log"
        last = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
        return LabError(f"{name} ended while it booted; the last lines of {log}:\n{last}")

    def _set_port(self, name: str) -> None:
        state = "down" if self.host(name)["cut"] else "up"
        call("ip", "-n", self.record["switch"], "link", "set", "dev", name, state)

    # -- disks and keys

    def _make_disk(self, name: str) -> None:
        """Install a host: once, for `down` keeps disks."""
        disk = self.disk(name)
        if not disk.exists():
            disk.parent.mkdir(mode=0o700, exist_ok=True)
            new = disk.with_name(f"{name}.new")
            shutil.rmtree(new, ignore_errors=True)
            new.mkdir()
            if self.host(name)["kind"] == "node":
                install(new / "root", name)
            else:
                install_machine(new / "root", name, machines.install_root())
            new.rename(disk)
        root = disk / "root"
        known = "".join(f"{host['address']} {other}\n" for other, host in self.hosts.items())
        (root / "etc/hosts").write_text(f"127.0.0.1 localhost\n{known}")
        if self.host(name)["kind"] != "node":
            machines.write_network(root / "etc", self._machine_address(name))
        # Not in the home folders: what is there may be a link that a user of the host has made.
        shutil.copyfile(self.directory / "ssh/id_ed25519.pub", root / "etc/ssh/lab_keys")

    def _make_client_key(self) -> None:
        folder = self.directory / "ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        if not (folder / "id_ed25519.pub").exists():
            make_key(folder / "id_ed25519")

    def _host_key(self, name: str) -> str:
        path = self.disk(name) / "root/etc/ssh/ssh_host_ed25519_key.pub"
        return " ".join(path.read_text().split()[:2])

    def write_client_files(self) -> None:
        folder = self.directory / "ssh"
        known = [
            f"{name},{host['address']} {self._host_key(name)}\n"
            for name, host in self.hosts.items()
        ]
        lines = ["# Written by lab.py."]
        for name, host in self.hosts.items():
            lines += [
                f"Host {name}",
                f"    HostName {host['address']}",
                "    User root",
                f"    IdentityFile {quoted(folder / 'id_ed25519')}",
                "    IdentitiesOnly yes",
                f"    UserKnownHostsFile {quoted(folder / 'known_hosts')}",
                "    StrictHostKeyChecking yes",
            ]
        for file, text in (("known_hosts", "".join(known)), ("config", "\n".join(lines) + "\n")):
            new = folder / f"{file}.new"
            new.write_text(text)
            new.replace(folder / file)
        # With sudo, the person who asked for the lab signs in to it.
        owner = int(os.environ.get("SUDO_UID", "0")), int(os.environ.get("SUDO_GID", "0"))
        for path in (folder, *folder.iterdir()):
            os.chown(path, *owner)

    def show(self) -> None:
        if not self.record:
            print(f"There is no lab in {self.directory}.")
            return
        for name, host in self.hosts.items():
            state = "running" if self.is_running(name) else "off"
            if host["cut"]:
                state += ", cut"
            boot_id = ""
            if "run" in state and host["kind"] == "node":
                boot_id = (self.disk(name) / "boot_id").read_text().strip()
            print(f"{name:8} {host['address']:15} {state:13} {boot_id}".rstrip())
        if self.hosts:
            print(f"\nSign in: ssh -F {self.client_config} {next(iter(self.hosts))}")


# -- parts of a lab ------------------------------------------------------------------------------


def new_host(kind: str, address: str, namespace: str) -> dict[str, Any]:
    """Return the record of a host that has not been booted."""
    return {
        "kind": kind,
        "address": address,
        # Kept over boots: others remember for a while who has which address.
        "mac": ":".join(["02", *(f"{byte:02x}" for byte in secrets.token_bytes(5))]),
        "namespace": namespace,
        "cgroups": [],
        "processes": [],
        "cut": False,
    }


def machine_boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def choose_prefix() -> str:
    """Return letters that begin no name of a namespace or link: 9, of the 15 that a link may have."""
    while True:
        prefix = f"lab{secrets.token_hex(3)}"
        taken = [*NAMESPACES.glob(f"{prefix}*"), *Path("/sys/class/net").glob(f"{prefix}*")]
        if not taken:
            return prefix


def refuse_used(network: ipaddress.IPv4Network) -> None:
    """
    Refuse a network that this machine already has.

    A wider route, such as that of a VPN for 10.0.0.0/8, is no hindrance: the narrower one wins.
    """
    for link in json.loads(call("ip", "-json", "-4", "address")):
        for address in link.get("addr_info", ()):
            found = f"{address['local']}/{address['prefixlen']}"
            if ipaddress.IPv4Network(found, strict=False).overlaps(network):
                _refuse(network, f"the link {link['ifname']} has the address {found}")
    for route in json.loads(call("ip", "-json", "-4", "route")):
        if route["dst"] != "default" and ipaddress.IPv4Network(route["dst"]).subnet_of(network):
            _refuse(network, f"there is a route to {route['dst']}")


def _refuse(network: ipaddress.IPv4Network, reason: str) -> None:
    raise NetworkInUseError(
        f"the network {network} is in use: {reason}; choose another one:"
        " `lab.py up --network 10.214.7.0/24`"
    )


def delete_namespace(name: str) -> None:
    if (NAMESPACES / name).exists():
        call("ip", "netns", "delete", name)


def delete_link(name: str, namespace: str = "") -> None:
    where = ("-n", namespace) if namespace else ()
    present = json.loads(call("ip", *where, "-json", "link") or "[]")
    if any(link["ifname"] == name for link in present):
        call("ip", *where, "link", "delete", "dev", name)


def install(root: Path, name: str) -> None:
    """Make the folders of a host's disk, with users and an identity of their own."""
    root.mkdir()
    for folder, mode in (
        ("home", 0o755), ("mnt", 0o755), ("root", 0o700), ("srv", 0o755), ("var", 0o755),
        ("var/cache", 0o755), ("var/lib", 0o755), ("var/log", 0o755), ("var/tmp", 0o1777),
    ):  # fmt: skip
        (root / folder).mkdir()
        (root / folder).chmod(mode)
    (root / "var/log/lastlog").touch()
    (root / "var/run").symlink_to("/run")
    (root / "var/lock").symlink_to("/run/lock")
    etc = root / "etc"
    call("cp", "-a", "/etc", str(etc))
    (etc / "ssh").mkdir(exist_ok=True)
    # Keys of this machine; a login that is closed here; its commands at boot; servers that no
    # host reaches.
    for path in (
        *(etc / "ssh").glob("ssh_host_*"),
        *(etc / file for file in ("nologin", "rc.local", "resolv.conf")),
    ):
        path.unlink(missing_ok=True)
    for file, text in (
        ("hostname", f"{name}\n"),
        ("machine-id", f"{uuid.uuid4().hex}\n"),
        ("resolv.conf", ""),
        ("ssh/sshd_config", SSHD_CONFIG),
    ):
        (etc / file).unlink(missing_ok=True)
        (etc / file).write_text(text)
    add_users(etc, root / "home")
    make_key(etc / "ssh/ssh_host_ed25519_key")


def install_machine(root: Path, name: str, common: Path) -> None:
    """Make the files in which a machine differs from the root folder of all machines."""
    root.mkdir()
    for folder, mode in (("etc", 0o755), ("etc/ssh", 0o755), ("home", 0o755)):
        (root / folder).mkdir()
        (root / folder).chmod(mode)
    for file in ("passwd", "group", "shadow"):
        shutil.copy2(common / "etc" / file, root / "etc" / file)
    (root / "etc/hostname").write_text(f"{name}\n")
    (root / "etc/machine-id").write_text(f"{uuid.uuid4().hex}\n")
    (root / "etc/resolv.conf").write_text("")
    add_users(root / "etc", root / "home")
    make_key(root / "etc/ssh/ssh_host_ed25519_key")


def add_users(etc: Path, homes: Path) -> None:
    """Add the plain user, and let both users sign in with a key: sshd refuses a locked account."""
    tables = {}
    for file in ("passwd", "group", "shadow"):
        with contextlib.suppress(FileNotFoundError):
            rows = (etc / file).read_text().splitlines()
            tables[file] = [row for row in rows if row.split(":")[0] != PLAIN_USER]
    taken = {row.split(":")[2] for file in ("passwd", "group") for row in tables[file]}
    number = next(number for number in range(1000, 60000) if str(number) not in taken)
    shell = "/bin/bash" if Path("/bin/bash").exists() else "/bin/sh"
    home = f"/home/{PLAIN_USER}"
    tables["passwd"].append(f"{PLAIN_USER}:x:{number}:{number}::{home}:{shell}")
    tables["group"].append(f"{PLAIN_USER}:x:{number}:")
    tables["shadow"] = [row for row in tables["shadow"] if not row.startswith("root:")]
    tables["shadow"] += [f"{user}:*:20000:0:99999:7:::" for user in ("root", PLAIN_USER)]
    for file, rows in tables.items():
        (etc / file).write_text("\n".join(rows) + "\n")
    folder = homes / PLAIN_USER
    folder.mkdir(mode=0o755)
    os.chown(folder, number, number)


def make_key(path: Path) -> None:
    """Make a key pair, or replace the one that is there."""
    new = path.with_name("new_key")
    for file in (new, new.with_suffix(".pub")):
        file.unlink(missing_ok=True)
    call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(new))
    new.replace(path)
    new.with_suffix(".pub").replace(path.with_name(f"{path.name}.pub"))


def quoted(path: Path) -> str:
    """Write a path for ssh_config(5): a space would end it, and `%` has a meaning."""
    return '"{}"'.format(str(path).replace("%", "%%"))


def find_program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}")
    if found is None:
        raise LabError(
            f"{name} is not installed; as root on Debian, run `apt-get install {PROGRAMS[name]}`"
        )
    return found


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until no other command works on the lab; a killed one holds nothing."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


# -- the command --------------------------------------------------------------------------------


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="lab.py", description=__doc__.strip().splitlines()[0])
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--directory", type=Path, default=DIRECTORY, metavar="DIR",
                        help="folder of the lab (default: .lab beside this program)")  # fmt: skip
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, parents=[shared], help=text, description=text)

    up = add("up", "Start the lab; boot hosts that are off")
    up.add_argument("--hosts", type=int, metavar="N", choices=range(HOSTS_MAX + 1),
                    help=f"number of hosts (default: {HOSTS}, with --machines 0)")  # fmt: skip
    up.add_argument("--machines", type=int, metavar="N", choices=range(MACHINES_MAX + 1),
                    help="number of whole machines, with systemd (default: 0)")  # fmt: skip
    up.add_argument("--include", action="store_true",
                    help="write an `Include` of the hosts into ~/.ssh/config, until `down`")  # fmt: skip
    up.add_argument("--network", type=_network, help=f"private network (default: {NETWORK})")
    add("down", "End the lab: hosts, namespaces and links; disks and keys are kept")
    add("status", "List the hosts")
    for name, text in (
        ("kill", "Cut the power of a host"),
        ("start", "Boot a host: with a new boot id and the disk that it had"),
        ("cut", "Pull the network cable of a host"),
        ("join", "Put the network cable of a host back"),
        ("rekey", "Give a host new SSH host keys"),
        ("run", "Run a command in a host as root, without SSH"),
        ("add", "Boot one more host, for tests"),
        ("remove", "End a host, and delete its disk"),
    ):
        command = add(name, text)
        command.add_argument("host", metavar="HOST")
        if name == "add":
            command.add_argument("--address", type=_address, required=True)
            command.add_argument("--files", type=Path, metavar="DIR",
                                 help="folder whose files lie on its disk when it boots")  # fmt: skip
        if name == "run":
            command.add_argument("words", nargs=argparse.REMAINDER, metavar="CMD")
    return parser.parse_args(arguments)


def _network(text: str) -> str:
    try:
        network = ipaddress.IPv4Network(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"{exc}; write for example {NETWORK}") from None
    if not network.is_private:
        raise argparse.ArgumentTypeError(f"{text} is public; write for example {NETWORK}")
    return str(network)


def _address(text: str) -> str:
    return str(ipaddress.IPv4Address(text))


def main(arguments: list[str]) -> int:
    options = parse(arguments)
    try:
        refuse_plain_user()
        if options.command == "run":
            Lab(options.directory).run(options.host, options.words or ["sh"])
        for name in PROGRAMS:
            find_program(name)
        os.environ["PATH"] = f"{os.environ.get('PATH', '')}:{SYSTEM_PATH}"
        options.directory.mkdir(parents=True, exist_ok=True)
        with locked(options.directory / "lock"):
            execute(Lab(options.directory), options)
    except LabError as exc:
        print(f"lab: {exc}", file=sys.stderr)
        return exc.code
    except machines.MachineError as exc:
        print(f"lab: {exc}", file=sys.stderr)
        return LabError.code
    return 0


def refuse_plain_user() -> None:
    if os.geteuid() != 0:
        raise LabError("namespaces need root; run the same command with sudo")


def execute(lab: Lab, options: argparse.Namespace) -> None:
    if options.command == "up":
        lab.up(options.hosts, options.machines, options.network)
        lab.show()
        if options.include:
            lab.include()
    elif options.command == "down":
        lab.down()
    elif options.command == "status":
        lab.show()
    elif options.command == "kill":
        lab.power_off(options.host)
    elif options.command == "start":
        lab.host(options.host)
        lab.power_on(options.host)
    elif options.command in {"cut", "join"}:
        lab.set_cut(options.host, options.command == "cut")
    elif options.command == "add":
        lab.add(options.host, options.address, options.files)
    elif options.command == "remove":
        lab.remove(options.host)
    elif options.command == "rekey":
        lab.rekey(options.host)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
