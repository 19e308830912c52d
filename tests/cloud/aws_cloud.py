"""
AWS for tests: `with AwsCloud(folder) as cloud:` starts the front and makes what commands need to use it.

`cloud.environment()` is the whole environment of a command that uses Pulumi, boto3 or both. Nothing
else of AWS can be reached from it: programs that dial another address over HTTP meet a proxy that
records the address and refuses, and the end of the `with` fails for each of them.
"""

from __future__ import annotations

import os
import shlex
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from types import TracebackType
from typing import Any, Self

import botocore.session
from botocore.config import Config

from cloud import pulumi_program
from cloud.catalog import ACCOUNT
from cloud.descriptions import descriptions, end
from cloud.faults import Fault
from cloud.front import ACCESS_KEY, Answered, Front, Key, serve
from cloud.moto_calls import forget_everything
from cloud.region import Hosts

REGION = "us-east-1"
TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Instance:
    """One instance as the front itself has it, whatever calls show."""

    id: str
    type: str
    state: str
    zone: str
    region: str
    account: str
    tags: Mapping[str, str]
    private_ip: str
    public_ip: str
    spot: bool


class AwsCloud:
    """One cloud at a time in a process, because moto's state belongs to the process."""

    def __init__(
        self,
        folder: Path,
        address: Callable[[Mapping[str, str]], str] | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        """
        Prepare a cloud with its files in `folder`.

        Args:
            address: The address of an instance or an elastic address, by its tags: that of the
                namespace that plays it. Without it each has an address of loopback of its own.
            hosts: What boots behind instances, and gives them their addresses.
        """
        self.folder = folder
        address = address or (hosts.address if hosts else _loopback_addresses())
        self.front = Front(address, hosts)
        self.dialled: list[str] = []
        self.programs = folder / "programs"
        self._session = botocore.session.Session()
        self._clients: dict[tuple[str, str, str], Any] = {}

    def __enter__(self) -> Self:
        forget_everything()
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = serve(self.front)
        self._proxy = _start_proxy(self.dialled)
        self._install_programs()
        for name in ("pulumi", "stacks", "home"):
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "passphrase").write_text("passphrase of the tests")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for fault in self.front.faults:
            if fault.held is not None:
                fault.held.set()
        for server in (self._server, self._proxy):
            server.shutdown()
            server.server_close()
        if error is None:
            assert self.dialled == [], f"dialled outside of the tests: {self.dialled}"
            assert self._server.errors == []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def _install_programs(self) -> None:
        self.programs.mkdir(exist_ok=True)
        (self.programs / "pulumi").symlink_to(pulumi_program.pulumi_program())
        plugin = self.programs / "pulumi-resource-aws"
        python = shlex.quote(sys.executable)
        plugin.write_text(
            f"#!/bin/sh\nexport PYTHONPATH={shlex.quote(str(TESTS))}\n"
            f'exec {python} -m cloud.plugin.server "$@"\n'
        )
        plugin.chmod(0o755)

    def environment(self, account: str = ACCOUNT, region: str = REGION) -> dict[str, str]:
        """Return the variables of a command that acts as a user of the account, all of them."""
        proxy = f"http://127.0.0.1:{self._proxy.server_address[1]}"
        kept = {
            name: os.environ[name]
            for name in ("LANG", "TMPDIR", "XDG_CACHE_HOME")
            if name in os.environ
        }
        return {
            **kept,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            "AWS_ACCESS_KEY_ID": self.access_key(account),
            "AWS_SECRET_ACCESS_KEY": "secret of the tests",
            "AWS_REGION": region,
            "AWS_DEFAULT_REGION": region,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
            "HTTP_PROXY": proxy,
            "HTTPS_PROXY": proxy,
            "NO_PROXY": "127.0.0.1,localhost",
            "PULUMI_HOME": str(self.folder / "pulumi"),
            "PULUMI_BACKEND_URL": f"file://{self.folder / 'stacks'}",
            "PULUMI_CONFIG_PASSPHRASE_FILE": str(self.folder / "passphrase"),
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
        }

    # -- Accounts

    def access_key(self, account: str = ACCOUNT) -> str:
        """Return an access key of the account, which exists from then on."""
        if account == ACCOUNT:
            return ACCESS_KEY
        key = f"AKIATESTS{account}"
        self.front.keys.setdefault(key, Key(account))
        return key

    def expire(self, access_key: str = ACCESS_KEY, *, expired: bool = True) -> None:
        """Let the credentials expire, or renew them."""
        self.front.keys[access_key].expired = expired

    # -- The actual state

    def instances(self, *, ended: bool = False) -> list[Instance]:
        """Return the instances of all accounts and regions in the order of their creation."""
        with self.front.lock:
            found = [
                _instance(row, region.account, region.name)
                for region in self.front.regions()
                for row in descriptions(region)
            ]
        return [one for one in found if ended or one.state != "terminated"]

    def client(self, service: str = "ec2", account: str = ACCOUNT, region: str = REGION) -> Any:
        """Return a client of botocore: another person, who looks or changes something by hand."""
        key = (service, account, region)
        if key not in self._clients:
            self._clients[key] = self._session.create_client(
                service,
                region_name=region,
                endpoint_url=self.url,
                aws_access_key_id=self.access_key(account),
                aws_secret_access_key="secret of the tests",
                config=Config(retries={"total_max_attempts": 1}, proxies={}),
            )
        return self._clients[key]

    def calls(self, *operations: str) -> list[Answered]:
        """Return the calls so far, of these operations or of all."""
        with self.front.lock:
            record = list(self.front.record)
        return [row for row in record if not operations or row.operation in operations]

    # -- Faults, and what EC2 does by itself

    def inject(self, fault: Fault) -> Fault:
        """Let the fault meet calls from now on."""
        with self.front.lock:
            self.front.faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Let the fault meet no further call, and release the calls that it holds."""
        with self.front.lock:
            self.front.faults.remove(fault)
        if fault.held is not None:
            fault.held.set()

    def lag(self, seconds: float) -> None:
        """Let lists be so much older than the actual state."""
        with self.front.lock:
            self.front.lag_seconds = seconds
            for region in self.front.regions():
                region.lag_seconds = seconds

    def reclaim_spot(self, identity: str) -> None:
        """Take a spot instance away."""
        message = "Server.SpotInstanceTermination: Spot instance termination"
        self._end(identity, "Server.SpotInstanceTermination", message)

    def announce_spot_end(self, identity: str, seconds: float = 120.0) -> None:
        """Let the metadata service of a host announce that its spot capacity is taken away."""
        assert self.front.hosts is not None
        self.front.hosts.metadata(identity).announce_end(seconds)

    def shut_down(self, identity: str) -> None:
        """End an instance whose own system shuts down, and whose shutdown behaviour is `terminate`."""
        message = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
        self._end(identity, "Client.InstanceInitiatedShutdown", message)

    def _end(self, identity: str, code: str, message: str) -> None:
        with self.front.lock:
            for region in self.front.regions():
                if identity in region.instances:
                    end(region, identity, code, message)

    def set_console(self, identity: str, text: str) -> None:
        """Set what `GetConsoleOutput` returns."""
        with self.front.lock:
            for region in self.front.regions():
                if identity in region.instances:
                    region.consoles[identity] = text


def _instance(row: dict[str, Any], account: str, region: str) -> Instance:
    return Instance(
        row["InstanceId"],
        row["InstanceType"],
        row["State"]["Name"],
        row["Placement"]["AvailabilityZone"],
        region,
        account,
        {tag["Key"]: tag["Value"] for tag in row.get("Tags", [])},
        row.get("PrivateIpAddress", ""),
        row.get("PublicIpAddress", ""),
        "SpotInstanceRequestId" in row,
    )


def _loopback_addresses() -> Callable[[Mapping[str, str]], str]:
    """Return a source of addresses that end on this machine: those of moto exist on the internet."""
    numbers = count(1)

    def address(tags: Mapping[str, str]) -> str:
        number = next(numbers)
        return f"127.{64 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"

    return address


class _Proxy(ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    dialled: list[str]


class _Refuse(StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        self.server.dialled.append(self.rfile.readline(2000).decode("latin-1").strip())
        self.wfile.write(
            b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        )


def _start_proxy(dialled: list[str]) -> _Proxy:
    proxy = _Proxy(("127.0.0.1", 0), _Refuse)
    proxy.dialled = dialled
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    return proxy
