"""The hosts of a lab: made, booted, cut off and ended, each step recorded before it is taken."""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import cgroups
import ssh_include
from disks import install, install_machine, make_key
from networks import NAMESPACES, NETWORK, choose_prefix, delete_link, delete_namespace, refuse_used
from processes import (
    PATIENCE_SECONDS,
    SYSTEM_PATH,
    LabError,
    Process,
    call,
    end,
    find_child,
    find_program,
    is_alive,
    locked,
    read_process,
    try_call,
    wait_for,
)

import machines

BOOT = Path(__file__).resolve().with_name("boot.sh")
BOOT_MACHINE = Path(__file__).resolve().with_name("machine.sh")
HOSTS = 4
FIRST_ADDRESS = 10
"""node1 is .11 and node4 is .14; .1 is this machine."""

FIRST_MACHINE = 200
"""machine1 is .201: after the most hosts."""

MACHINE_LOCK = Path("/run/fleetform-lab.lock")
"""Held while a network is chosen: two labs that begin at once would take the same one."""
MACHINE_SECONDS = 240.0
"""A machine answers after 10 to 20 s; two that boot on one busy processor take several times as long."""


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


def quoted(path: Path) -> str:
    """Write a path for ssh_config(5): a space would end it, and `%` has a meaning."""
    return '"{}"'.format(str(path).replace("%", "%%"))
