"""
Real SSH hosts for tests: a lab of environments/lab in a folder and a network of its own.

    @pytest.fixture(scope="module")
    def hosts(tmp_path_factory):
        with lab(tmp_path_factory.mktemp("lab"), hosts=2) as running:
            yield running
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from required import need

PROGRAM = Path(__file__).parents[1] / "environments/lab/lab.py"
PATIENCE_SECONDS = 120.0
MACHINES_SECONDS = 900.0
"""Their root folder is installed once, in 2 minutes on a quiet machine."""

NETWORK_IN_USE = 3
NETWORK_TRIES = 20

_PROGRAMS = ("ip", "nsenter", "ssh", "ssh-keygen", "ssh-keyscan", "sshd", "unshare")
_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


class Lab:
    """A running lab; its hosts are node1, node2 and so on, its whole machines machine1 and so on."""

    def __init__(self, folder: Path, hosts: int, machines: int = 0) -> None:
        self.directory = folder / "lab"
        self._count = hosts
        self._machines = machines

    @property
    def config(self) -> Path:
        """The configuration for `ssh -F`; `known_hosts` and `id_ed25519` are beside it."""
        return self.directory / "ssh/config"

    @property
    def known_hosts(self) -> Path:
        return self.directory / "ssh/known_hosts"

    @property
    def identity(self) -> Path:
        """The private key, for the users root and lab."""
        return self.directory / "ssh/id_ed25519"

    @property
    def record(self) -> dict[str, Any]:
        record: dict[str, Any] = json.loads((self.directory / "lab.json").read_text())
        return record

    @property
    def hosts(self) -> dict[str, str]:
        """The address of each host, by name."""
        return {name: host["address"] for name, host in self.record["hosts"].items()}

    def init_pid(self, host: str) -> int:
        """Return the id, on this machine, of process 1 of a running host."""
        return int(self.record["hosts"][host]["processes"][1][0])

    def namespace(self, host: str) -> str:
        """Return the name of the network namespace of a host."""
        return str(self.record["hosts"][host]["namespace"])

    def kill(self, host: str) -> None:
        """Cut the power: nothing more is heard of the host."""
        self.call("kill", host)

    def start(self, host: str) -> None:
        """Boot it: with a new boot id and the disk that it had; it answers when this returns."""
        self.call("start", host)

    def cut(self, host: str) -> None:
        """Pull its network cable; its processes go on."""
        self.call("cut", host)

    def join(self, host: str) -> None:
        self.call("join", host)

    def slow(self, host: str) -> None:
        """Let 1 Mbit/s arrive at it, until it boots again."""
        words = ["ip", "netns", "exec", self.record["switch"], "tc", "qdisc", "add", "dev", host]
        words += ["root", "tbf", "rate", "1mbit", "burst", "32kbit", "latency", "400ms"]
        subprocess.run(words, check=True, env={**os.environ, "PATH": _PATH})

    def rekey(self, host: str) -> None:
        """Give it a new host key, also in `known_hosts`."""
        self.call("rekey", host)

    def run(self, host: str, *command: str, check: bool = True) -> str:
        """Run a command as root, without SSH, also while the host is cut off; returns its output."""
        return self.call("run", host, *command, check=check).stdout

    def ssh(
        self, host: str, *command: str, options: tuple[str, ...] = (), check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command over SSH, as `node1` or `lab@node1`; the host's shell reads the words."""
        done = subprocess.run(
            ["ssh", "-F", self.config, *options, "-oBatchMode=yes", "-oConnectTimeout=10", host, *command],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def call(
        self, command: str, *words: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run a command of lab.py."""
        done = subprocess.run(
            self.command(command, *words),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=MACHINES_SECONDS if self._machines else PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == 0 or not check, done.stdout + done.stderr
        return done

    def command(self, command: str, *words: str) -> list[str]:
        return [sys.executable, str(PROGRAM), command, "--directory", str(self.directory), *words]

    def up(self) -> None:
        """Start it, in a network that no other lab has; boots hosts that are off."""
        if (self.directory / "lab.json").exists():
            self.call("up")
            return
        for _ in range(NETWORK_TRIES):
            # Tests run side by side, and none knows of the others.
            network = f"10.{random.randrange(128, 224)}.{random.randrange(256)}.0/24"
            words = ["--hosts", str(self._count), "--machines", str(self._machines)]
            words += ["--network", network]
            done = self.call("up", *words, check=False)
            if done.returncode != NETWORK_IN_USE:
                assert done.returncode == 0, done.stdout + done.stderr
                return
        raise AssertionError(f"no free network in {NETWORK_TRIES} tries: {done.stderr}")

    def down(self) -> None:
        self.call("down")


def reason_no_machines() -> str:
    """Say why no whole machine can be started here; empty when one can."""
    programs = ("debootstrap", "linux.uml", "systemd-nspawn")
    found = [program for program in programs if shutil.which(program, path=_PATH)]
    if "debootstrap" in found and len(found) > 1:
        return ""
    return (
        "debootstrap, and user-mode-linux or systemd-container, are not installed;"
        " `sh tests/services.sh machines` installs them"
    )


def reason_missing() -> str:
    """Say why no lab can be started here; empty when one can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    missing = [program for program in _PROGRAMS if shutil.which(program, path=_PATH) is None]
    if missing:
        return f"{', '.join(missing)} not installed; `sh tests/services.sh lab` installs it"
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--fork",
         "--mount-proc", "true"],
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    return tried.stderr.strip()


@contextlib.contextmanager
def lab(folder: Path, hosts: int = 2, machines: int = 0) -> Iterator[Lab]:
    """Start a lab in `folder`, a test's own; ends it whatever happens. Skips where none can be."""
    reason = reason_missing()
    need("lab", not reason, reason)
    if machines:
        reason = reason_no_machines()
        need("machines", not reason, reason)
    running = Lab(folder, hosts, machines)
    try:
        running.up()
        yield running
    finally:
        running.down()
