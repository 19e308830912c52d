"""
A shell in which AWS is the cloud of the tests, to try fleets without an account: `make cloud`.

    python tests/cloud/shell.py                 the shell of $SHELL
    python tests/cloud/shell.py COMMAND ...     one command

The instances are hosts of a lab of their own, with stand-ins of GPUs. All of it ends with the shell: hosts, disks, and the state
and ledgers of fleetform that were made in it. In the shell, `cloud` does what happens to an account by itself or by hand.
"""

from __future__ import annotations

import contextlib
import csv
import os
import socketserver
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cloud import cloud_init, faults, pulumi_program
from cloud.aws_cloud import AwsCloud, Instance
from cloud.instance_hosts import InstanceHosts
from fleetform.spec.clouds.names import REGIONS, catalogue_lines
from lab import lab

USAGE = """\
cloud list              show what is in the account
cloud terminate ID      terminate an instance
cloud interrupt ID      announce the end of a spot instance, and take it two minutes later
cloud refuse TYPE       have no capacity for an instance type from now on
cloud allow             have capacity for all types again"""

_CLIENT = """\
#!{python}
import socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    line.sendall("\\0".join(sys.argv[1:]).encode() + b"\\n")
    line.shutdown(socket.SHUT_WR)
    said = line.makefile().read()
code, _, text = said.partition(" ")
print(text, file=sys.stderr if int(code) else sys.stdout)
sys.exit(int(code))
"""


class Mistake(Exception):
    """A command cannot be carried out; the text says why."""


class Commands:
    """The commands of the program `cloud`."""

    def __init__(self, cloud: AwsCloud) -> None:
        self._cloud = cloud
        self._refusals: list[faults.Fault] = []

    def answer(self, words: list[str]) -> str:
        commands: dict[str, Callable[..., str]] = {
            "list": self._list,
            "terminate": self._terminate,
            "interrupt": self._interrupt,
            "refuse": self._refuse,
            "allow": self._allow,
        }
        takes_word = {"terminate", "interrupt", "refuse"}
        name, *rest = words
        if name not in commands or len(rest) != (name in takes_word):
            raise Mistake(USAGE)
        return commands[name](*rest)

    def _list(self) -> str:
        lines = [
            f"{one.id}  {one.type}  {one.zone}  {one.state}{'  spot' if one.spot else ''}  {one.tags.get('Name', '')}"
            for one in self._cloud.instances()
        ]
        client = self._cloud.client()
        lines += [
            f"{one['VolumeId']}  {one['Size']} GB  {one['AvailabilityZone']}  {one['State']}"
            for one in client.describe_volumes()["Volumes"]
        ]
        lines += [
            f"{one['GroupId']}  security group {one['GroupName']}"
            for one in client.describe_security_groups()["SecurityGroups"]
            if one["GroupName"] != "default"
        ]
        lines += [
            f"{one['KeyPairId']}  key pair {one['KeyName']}"
            for one in client.describe_key_pairs()["KeyPairs"]
        ]
        return "\n".join(lines) or "nothing"

    def _terminate(self, identity: str) -> str:
        region = self._instance(identity).region
        self._cloud.client(region=region).terminate_instances(InstanceIds=[identity])
        return f"{identity} is terminated"

    def _interrupt(self, identity: str) -> str:
        if not self._instance(identity).spot:
            raise Mistake(f"{identity} is on demand: only spot instances are taken back")
        self._cloud.announce_spot_end(identity)
        timer = threading.Timer(120, self._cloud.reclaim_spot, (identity,))
        timer.daemon = True
        timer.start()
        return f"{identity} ends in two minutes"

    def _refuse(self, instance_type: str) -> str:
        self._refusals.append(self._cloud.inject(faults.no_capacity(instance_type)))
        return f"there is no capacity for {instance_type}"

    def _allow(self) -> str:
        while self._refusals:
            self._cloud.remove(self._refusals.pop())
        return "there is capacity for all types"

    def _instance(self, identity: str) -> Instance:
        for one in self._cloud.instances():
            if one.id == identity:
                return one
        raise Mistake(f"there is no instance {identity}; `cloud list` shows them")


@contextlib.contextmanager
def answering(cloud: AwsCloud, folder: Path) -> Iterator[None]:
    """Answer the program `cloud`, which is on the search path of the shell."""
    commands = Commands(cloud)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            words = self.rfile.readline().decode().rstrip("\n").split("\0")
            try:
                said = f"0 {commands.answer(words)}"
            except Mistake as problem:
                said = f"2 {problem}"
            self.wfile.write(said.encode())

    address = str(folder / "cloud.socket")
    program = cloud.programs / "cloud"
    program.write_text(_CLIENT.format(python=sys.executable, address=address))
    program.chmod(0o755)
    with socketserver.ThreadingUnixStreamServer(address, Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield
        server.shutdown()


def main(command: list[str]) -> int:
    if reason := pulumi_program.reason_missing() or cloud_init.reason_missing():
        raise SystemExit(f"cloud: {reason}")
    if os.geteuid() != 0:
        raise SystemExit("cloud: the hosts are namespaces, which need root; run it with sudo")
    with (
        tempfile.TemporaryDirectory(prefix="fleetform-cloud-") as name,
        lab(Path(name), hosts=0) as running,
    ):
        folder = Path(name)
        hosts = InstanceHosts(running)
        try:
            with AwsCloud(folder / "aws", hosts=hosts) as cloud, answering(cloud, folder):
                # Each region has the prices of us-east-1.
                cloud.front.catalog.prices = dict.fromkeys(REGIONS["aws"], _prices())
                return _run(command, cloud)
        finally:
            hosts.close()


def _prices() -> dict[str, str]:
    """Return dollars an hour on demand by type, as the catalogue has them."""
    rows = csv.DictReader(catalogue_lines("aws"))
    return {
        row["instance_name"]: row["price"]
        for row in rows
        if row["price"] and row["spot"] == "False"
    }


def _run(command: list[str], cloud: AwsCloud) -> int:
    variables = cloud.environment()
    programs = Path(sys.executable).parent
    variables["PATH"] = f"{programs}:{variables['PATH']}"
    variables["TERM"] = os.environ.get("TERM", "dumb")
    if command:
        return subprocess.run(command, env=variables, check=False).returncode
    print(f"AWS is played on this machine until you leave this shell with `exit`.\n\n{USAGE}\n")
    variables["PS1"] = "cloud$ "
    return subprocess.run([os.environ.get("SHELL", "sh")], env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
