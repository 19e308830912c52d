"""
Stops beside an upload on a slow line: 1 Mbit/s, 200 ms there and back, 1 % of the packets lost.

    python tests/bench/bench_slow_line.py [STOPS]

The host is one of a lab of network namespaces, and the line a process that carries packets
(`slow_line.py`); all else is as on a real line: TCP of this kernel, a real SSH server, the agent.
It needs root and Linux; `sh tests/services.sh lab` installs the SSH server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import parser_of, percentile, positive, scratch, table

sys.path.insert(0, str(Path(__file__).parents[1]))

from ssh_host import connected, upload, use_home

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import Cause
from fleetform.providers.contract.hosts import Host
from lab import Lab, lab

STOPS = 200
RATE = 1e6
DELAY_SECONDS = 0.1
LOSS = 0.01
BLOB_BYTES = 2_000_000
BETWEEN_SECONDS = 0.3
LINE = Path(__file__).with_name("slow_line.py")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("stops", nargs="?", type=positive, default=STOPS)
    stops = parser.parse_args(arguments).stops
    with scratch() as folder, lab(folder / "lab", hosts=1) as running, line(running) as slow:
        config = f"Host node1\n    HostName {slow.address}\n    HostKeyAlias node1\n"
        file = use_home(folder / "home", config + running.config.read_text())
        bare = _with_ssh(folder, file)
        found = asyncio.run(_measure(folder, stops, slow))
    table(
        f"A line of 1 Mbit/s, 200 ms and 1 % loss; {stops} stops",
        ["what", "measured", "asked"],
        [
            ["2 MB by OpenSSH alone", _speed(bare), "-"],
            ["2 MB by fleetform alone", _speed(found.alone), "-"],
            ["2 MB by fleetform beside the stops, again and again", _speed(found.shared), "-"],
            ["of the line, meanwhile", f"{found.on_line * 8 / RATE:.0%}", "70 %"],
            ["a stop alone, p50 / p95", _spread(found.quiet), "-"],
            ["a stop beside an upload, p50 / p95", _spread(found.beside), "1 s"],
        ],
    )


class Line(NamedTuple):
    """The host's address on the line, and how much has been carried to it."""

    address: str
    carried_bytes: Callable[[], int]


class Found(NamedTuple):
    """Speeds in bytes a second: of contents, but `on_line` is of all packets; stops in seconds."""

    alone: float
    shared: float
    on_line: float
    quiet: Sequence[float]
    beside: Sequence[float]


@contextlib.contextmanager
def line(running: Lab) -> Iterator[Line]:
    """Lay the line to the lab's first host."""
    namespace = f"/run/netns/{running.record['hosts']['node1']['namespace']}"
    process = subprocess.Popen(
        [sys.executable, LINE, namespace, str(RATE), str(DELAY_SECONDS), str(LOSS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    asking, answers = process.stdin, process.stdout
    assert asking is not None
    assert answers is not None

    def carried() -> int:
        asking.write("\n")
        asking.flush()
        return int(answers.readline())

    try:
        yield Line(answers.readline().split()[1], carried)
    finally:
        asking.close()
        process.wait()


def _with_ssh(folder: Path, config: Path) -> float:
    """Send 2 MB through OpenSSH, in bytes a second: what TCP makes of this line."""
    content = folder / "bare"
    content.write_bytes(os.urandom(BLOB_BYTES))
    command = ["ssh", "-F", config, "node1", "cat > /dev/null"]
    subprocess.run([*command[:-1], "true"], check=True)
    started = time.perf_counter()
    with content.open("rb") as data:
        subprocess.run(command, stdin=data, check=True)
    return BLOB_BYTES / (time.perf_counter() - started)


async def _measure(folder: Path, stops: int, slow: Line) -> Found:
    async with connected(folder) as host:
        news = asyncio.create_task(_listen(host))
        alone = await upload(folder, host, BLOB_BYTES)
        quiet = [await _stop(host, number) for number in range(stops // 10 or 1)]
        beside: list[float] = []
        sent, started, before = 0, time.perf_counter(), slow.carried_bytes()
        stopping = asyncio.create_task(_stop_all(host, stops, beside))
        while not stopping.done():
            await upload(folder, host, BLOB_BYTES)
            sent += BLOB_BYTES
        took = time.perf_counter() - started
        await stopping
        news.cancel()
    return Found(alone, sent / took, (slow.carried_bytes() - before) / took, quiet, beside)


async def _listen(host: Host) -> None:
    async for _ in host.news():
        pass


async def _stop_all(host: Host, stops: int, into: list[float]) -> None:
    for number in range(stops):
        await asyncio.sleep(BETWEEN_SECONDS)
        into.append(await _stop(host, 1000 + number))


async def _stop(host: Host, number: int) -> float:
    """Stop a job that the host has not seen: it writes a tombstone before it answers."""
    started = time.perf_counter()
    key = JobKey(f"run{number}", 1, 0)
    await host.stop(key, f"job{number}", 1, cause=Cause.STOPPED, grace_seconds=0)
    return time.perf_counter() - started


def _speed(bytes_a_second: float) -> str:
    return f"{bytes_a_second * 8 / 1e6:.2f} Mbit/s"


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.2f} / {percentile(values, 0.95):.2f} s"


if __name__ == "__main__":
    main()
