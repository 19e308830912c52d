"""
Many SSH hosts in one process: real SSH and the real protocol, with agents that run nothing.

    python tests/bench/host_stand_ins.py FOLDER COUNT

Each host has an address of its own in 127.77.0.0/16 and one port, which is printed. An agent is the
journal of the product, as in tests/simulation; a job ends as soon as it starts. `FOLDER` gets a key
`client` for who signs in, and `ends.csv` with a line for each job that ended: its run and the time
in milliseconds at which its host says so. What hosts have to say waits for the one processor that
they share, which real hosts do not.

Lines on standard input: `cut` ends all connections at once, `count` prints how many sessions are
open and how many there have been. The process ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import sys
import time
from pathlib import Path

import asyncssh

sys.path.insert(0, str(Path(__file__).parents[1]))

from fleetform.providers.ssh.setup import MARKER
from simulation.agent import Agent, AgentFaults
from simulation.host import Host, Script
from simulation.judge import Judge

CPU_MILLICORES = 1000
STATE = "/home/ada/.local/state/fleetform"

_PYTHON = "/usr/bin/python3"
_READ_BYTES = 1 << 16


class WallHost(Host):
    """A host of the simulation, by the clock of this machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class Channel:
    """One session of a controller, where the agent of the simulation wants a link."""

    def __init__(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        self._process = process
        self.far = self
        self.is_open = True

    async def read(self, _size: int) -> bytes:
        try:
            return await self._process.stdin.read(_READ_BYTES)
        except (asyncssh.Error, OSError):
            return b""

    def write(self, data: bytes) -> None:
        if self.is_open:
            # The channel closes before `serve` hears of it.
            with contextlib.suppress(BrokenPipeError):
                self._process.stdout.write(bytes(data))

    def close(self) -> None:
        if self.is_open:
            self.is_open = False
            self._process.exit(0)

    reset = close


class StandIns:
    """All hosts, by address."""

    def __init__(self, ends: Path) -> None:
        self._ends = ends.open("w", buffering=1)
        self._judge = Judge()
        self._agents: dict[str, Agent] = {}
        self._connections: dict[asyncssh.SSHServerConnection, None] = {}
        self.open_count = 0
        self.opened_count = 0

    def add(self, address: str) -> None:
        host = WallHost(
            address,
            source=random.Random(address),
            judge=self._judge,
            cpu_millicores=CPU_MILLICORES,
            script=lambda _job: Script(0.0, 0),
        )
        faults = AgentFaults()
        faults.prepare_seconds = 0.0
        self._agents[address] = Agent(
            host, source=random.Random(address), judge=self._judge, faults=faults
        )
        say_end = host.on_end
        assert say_end is not None

        def note_end(job_uid: str) -> None:
            run_uid = host.directories[job_uid].job.key.run_uid
            self._ends.write(f"{run_uid},{time.time_ns() // 1_000_000}\n")
            say_end(job_uid)

        host.on_end = note_end

    def connected(self, connection: asyncssh.SSHServerConnection) -> None:
        self._connections[connection] = None

    def disconnected(self, connection: asyncssh.SSHServerConnection) -> None:
        self._connections.pop(connection, None)

    def cut(self) -> None:
        """Break every connection, as a switch does that loses its power for a moment."""
        for connection in list(self._connections):
            connection.abort()

    async def serve(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        """Run one command, as the login shell of a host would."""
        command = process.command or ""
        process.stdout.write(f"{MARKER}\n".encode())
        if " 'connect' " in command:
            await self._serve_session(process)
            return
        program = await process.stdin.read()
        process.stdout.write(self._answer(program).encode())
        process.exit(0)

    def _answer(self, program: bytes) -> str:
        if b"uname -s" in program:
            return f"python {_PYTHON}\n"
        # The last line of the program: `run(json.loads("…"))`, JSON twice.
        line = program.decode().rstrip().rpartition("run(json.loads(")[2]
        request = json.loads(json.loads(line.removesuffix("))")))
        if request["operation"] == "start":
            started = {"bundle": request["bundle"], "failure": "", "notes": []}
            return json.dumps(started) + "\n"
        bundle = f"{STATE}/agents/{request['sha256'][:16]}.pyz"
        root = f"{STATE}/hosts/{request['environment_uid']}/{request['name']}"
        answer = {
            "bundle": bundle,
            "any_bundle": bundle,
            "root": root,
            "is_sound": True,
            "is_ready": False,
        }
        answer |= {"earlier": bundle, "volumes": f"{STATE}/volumes"}
        return json.dumps(answer) + "\n"

    async def _serve_session(self, process: asyncssh.SSHServerProcess[bytes]) -> None:
        address = process.get_extra_info("sockname")[0]
        channel = Channel(process)
        self.open_count += 1
        self.opened_count += 1
        self._agents[address].accept(channel)
        try:
            await process.channel.wait_closed()
        finally:
            channel.is_open = False
            self.open_count -= 1


class Server(asyncssh.SSHServer):
    def __init__(self, hosts: StandIns) -> None:
        self._hosts = hosts
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._hosts.connected(conn)

    def connection_lost(self, exc: Exception | None) -> None:
        assert self._connection is not None
        self._hosts.disconnected(self._connection)


def addresses(count: int) -> list[str]:
    """Return the addresses of the hosts; all are loopback."""
    return [f"127.77.{number // 250}.{number % 250 + 1}" for number in range(count)]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((addresses(1)[0], 0))
        port: int = probe.getsockname()[1]
        return port


async def main(folder: Path, count: int) -> None:
    hosts = StandIns(folder / "ends.csv")
    for address in addresses(count):
        hosts.add(address)
    client = asyncssh.generate_private_key("ssh-ed25519")
    client.write_private_key(str(folder / "client"))
    (folder / "client").chmod(0o600)
    authorized = asyncssh.import_authorized_keys(client.export_public_key().decode())
    port = _free_port()
    await asyncssh.listen(
        list(addresses(count)),
        port,
        backlog=1024,
        server_factory=lambda: Server(hosts),
        server_host_keys=[asyncssh.generate_private_key("ssh-ed25519")],
        authorized_client_keys=authorized,
        process_factory=hosts.serve,
        encoding=None,
    )
    print(port, flush=True)
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
    )
    while line := (await lines.readline()).strip():
        if line == b"cut":
            hosts.cut()
            print("cut", flush=True)
        else:
            print(hosts.open_count, hosts.opened_count, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
