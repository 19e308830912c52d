"""
The hosts behind instances: each is a host of a lab, which boots from the user data of its instance.

    with AwsCloud(folder, hosts=InstanceHosts(lab)) as cloud: ...

An instance has the address of its host. It runs before its host answers, as on EC2. The metadata
service answers inside of the host alone.
"""

from __future__ import annotations

import ipaddress
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cloud import cloud_init
from cloud.disks import HostDisks
from cloud.drivers import write_driver
from cloud.file_server import FileServer
from cloud.metadata import Metadata, MetadataServer
from lab import Lab

_FIRST = 20
_LAST = 250


@dataclass
class _Host:
    name: str
    metadata: MetadataServer


class InstanceHosts:
    def __init__(self, lab: Lab, file_server: FileServer | None = None) -> None:
        """Take a lab without hosts; it is ended by its owner, with the hosts that are left."""
        self._lab = lab
        self._file_server = file_server
        self._numbers = iter(range(_FIRST, _LAST))
        self._hosts: dict[str, _Host] = {}
        self._logs: dict[str, str] = {}
        self.disks = HostDisks(lab)

    def address(self, tags: Mapping[str, str]) -> str:
        """Return an address that no instance has had."""
        network = ipaddress.IPv4Network(self._lab.record["network"])
        return str(network[next(self._numbers)])

    def boot(self, identity: str, metadata: Metadata) -> None:
        """Boot the host of a new instance."""
        name = f"host{metadata.address.rpartition('.')[2]}"
        with tempfile.TemporaryDirectory() as folder:
            cloud_init.write_disk(Path(folder), identity, metadata.user_data)
            write_driver(Path(folder) / cloud_init.PROGRAMS_ON_HOST, metadata.type, identity)
            self._lab.call("add", name, "--address", metadata.address, "--files", folder)
        if self._file_server is not None:
            self._file_server.install(self._lab, name)
        server = MetadataServer(metadata, self._lab.namespace(name))
        self._hosts[identity] = _Host(name, server)

    def end(self, identity: str) -> None:
        """End every process of the host of an instance, and delete its disk."""
        if identity not in self._hosts:
            return  # An instance that ends a second time.
        host = self._hosts.pop(identity)
        host.metadata.close()
        self._logs[identity] = self._console(host.name)
        self._lab.call("remove", host.name)
        self.disks.end(host.name)

    def add_address(self, identity: str, address: str) -> None:
        """Let the host of an instance answer at an Elastic IP."""
        length = ipaddress.IPv4Network(self._lab.record["network"]).prefixlen
        self.run(identity, "ip", "address", "add", f"{address}/{length}", "dev", "eth0")

    def attach(self, identity: str, volume: str, size_gb: int) -> None:
        """Give the host of an instance the disk of a volume."""
        self.disks.attach(self._hosts[identity].name, volume, size_gb)

    def detach(self, volume: str) -> None:
        """Take the disk of a volume from its host."""
        self.disks.detach(volume)

    def resize(self, volume: str, size_gb: int) -> None:
        """Grow the disk of a volume."""
        self.disks.resize(volume, size_gb)

    def reboot(self, identity: str) -> None:
        """Cut the power of a host, and boot it from the disk that it has."""
        host = self._hosts[identity]
        host.metadata.close()
        self._lab.kill(host.name)
        self._lab.start(host.name)
        host.metadata = MetadataServer(host.metadata.metadata, self._lab.namespace(host.name))

    def console(self, identity: str) -> str:
        """Return what the host has printed, also after its end."""
        host = self._hosts.get(identity)
        return self._logs[identity] if host is None else self._console(host.name)

    def run(self, identity: str, *command: str, check: bool = True) -> str:
        """Run a command as root in the host of an instance, without SSH."""
        return self._lab.run(self._hosts[identity].name, *command, check=check)

    def metadata(self, identity: str) -> Metadata:
        return self._hosts[identity].metadata.metadata

    def close(self) -> None:
        self.disks.close()
        for host in self._hosts.values():
            host.metadata.close()

    def init_pid(self, identity: str) -> int:
        """Return the id, on this machine, of process 1 of the host of an instance."""
        return self._lab.init_pid(self._hosts[identity].name)

    def _console(self, name: str) -> str:
        disk = self._lab.directory / "hosts" / name
        return (disk / "root/var/log/console").read_text(errors="replace")
