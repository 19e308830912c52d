"""
One controller and many hosts over SSH: idle, all at work, all lost at once.

What one host more costs in memory counts from a controller of one host, which has loaded what it needs.

    python tests/bench/bench_many_hosts.py [HOSTS]

The hosts are another process (`host_stand_ins.py`) that speaks real SSH and the real protocol, and
whose jobs end at once. It shares the processors of this machine with the controller.
"""

from __future__ import annotations

import contextlib
import csv
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from host_stand_ins import addresses
from measuring import (
    FLEETFORM,
    environment_of,
    expect,
    measure,
    parser_of,
    percentile,
    positive,
    scratch,
    table,
    write_tree,
)

HOSTS = 1000
IDLE_SECONDS = 60.0
SINGLES = 40
PATIENCE_SECONDS = 300.0

_TICKS = os.sysconf("SC_CLK_TCK")

FLEET = """\
type: fleet
name: far
run_as: root
ssh_config:
  user: ada
  port: {port}
  identity_file: {key}
  host_keys: first-use
  hosts:
{hosts}
"""
ARRAY = """\
type: task
name: many
array: 1-{runs}
commands: ["true"]
resources: {{cpu: 1}}
"""
ONE = """\
type: task
name: one-{number}
commands: ["true"]
resources: {{cpu: 1}}
"""


class Hosts:
    """The process that plays the hosts."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [
                sys.executable,
                str(Path(__file__).with_name("host_stand_ins.py")),
                folder,
                str(count),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._read())

    def cut(self) -> None:
        """End all connections at once."""
        self._ask("cut")

    def sessions(self) -> tuple[int, int]:
        """Return how many sessions are open, and how many were ever opened."""
        is_open, ever = self._ask("count").split()
        return int(is_open), int(ever)

    def ends(self) -> dict[str, int]:
        """Return when each job ended, in milliseconds, by the uid of its run."""
        with (self.folder / "ends.csv").open(newline="") as file:
            return {uid: int(at_ms) for uid, at_ms in csv.reader(file)}

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _ask(self, line: str) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


class Usage(NamedTuple):
    """Of one process until now."""

    cpu_seconds: float
    resident_bytes: int


def usage(pid: int) -> Usage:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return Usage((int(fields[11]) + int(fields[12])) / _TICKS, pages * os.sysconf("SC_PAGE_SIZE"))


class Ends(threading.Thread):
    """Notes when each run's end becomes readable in the ledger, in milliseconds, by uid."""

    def __init__(self, ledger: Path) -> None:
        super().__init__(daemon=True)
        self.seen: dict[str, int] = {}
        self._ledger = ledger
        self._over = threading.Event()

    def run(self) -> None:
        connection = sqlite3.connect(f"file:{self._ledger}?mode=ro", uri=True)
        version = -1
        while not self._over.wait(0.002):
            # A version that has not moved means that nothing was committed.
            (now,) = connection.execute("PRAGMA data_version").fetchone()
            if now == version:
                continue
            version = now
            at_ms = time.time_ns() // 1_000_000
            for (uid,) in connection.execute("SELECT run_uid FROM jobs WHERE state = 'finished'"):
                self.seen.setdefault(uid, at_ms)
        connection.close()

    def end(self) -> None:
        self._over.set()
        self.join()


@contextlib.contextmanager
def controller(tree: Path, state: Path) -> Iterator[int]:
    """Run `fleetform serve`; yields its process id."""
    process = subprocess.Popen(
        [FLEETFORM, "serve", str(tree)],
        env=environment_of(state),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def wait_for(what: str, is_so: object) -> float:
    """Wait until `is_so()`; returns the seconds that it took."""
    assert callable(is_so)
    started = time.perf_counter()
    while not is_so():
        if time.perf_counter() - started > PATIENCE_SECONDS:
            raise SystemExit(f"after {PATIENCE_SECONDS:.0f} s: not yet {what}")
        time.sleep(0.02)
    return time.perf_counter() - started


def delays(hosts: Hosts, ends: Ends, known: set[str]) -> list[float]:
    """Return how many milliseconds after its end each new job's end was in the ledger."""
    ended = hosts.ends()
    return [float(ends.seen[uid] - at_ms) for uid, at_ms in ended.items() if uid not in known]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = parser_of(__doc__)
    parser.add_argument("hosts", nargs="?", type=positive, default=HOSTS)
    count = parser.parse_args(arguments).hosts
    with scratch() as folder:
        (folder / "hosts").mkdir()
        hosts = Hosts(folder / "hosts", count)
        try:
            rows = _measure(folder, hosts, count)
        finally:
            hosts.close()
    table(f"One controller and {count} hosts over SSH", ["what", "measured", "asked"], rows)


def _measure(folder: Path, hosts: Hosts, count: int) -> list[list[str]]:
    state, rows = folder / "state", []
    tree = write_tree(folder / "tree", {})
    with controller(tree, state) as pid:
        ledgers = state.glob("environments/*/ledger.db")
        wait_for("a ledger", (state / "environments").exists)
        _apply_fleet(tree, state, hosts, 1)
        time.sleep(2)
        with_one = usage(pid)
        wall = _apply_fleet(tree, state, hosts, count)
        rows.append(["apply of all other hosts", f"{wall:.1f} s", "-"])

        time.sleep(5)
        before = usage(pid)
        time.sleep(IDLE_SECONDS)
        after = usage(pid)
        share = (after.cpu_seconds - before.cpu_seconds) / IDLE_SECONDS
        each = (after.resident_bytes - with_one.resident_bytes) / (count - 1)
        rows.append(["idle: processor", f"{share:.1%} of a core", "5 %"])
        rows.append(["idle: memory of a further host", f"{each / 1024:.0f} KB", "150 KB"])

        ledger = next(iter(ledgers))
        ends = Ends(ledger)
        ends.start()
        for number in range(SINGLES):
            (tree / f"one-{number}.yaml").write_text(ONE.format(number=number))
            expect(measure(["apply", str(tree), "-y"], state=state))
        wait_for("all ended", lambda: len(ends.seen) >= SINGLES)
        late = delays(hosts, ends, set())
        known = set(hosts.ends())
        rows.append(
            ["end of a job in the ledger, idle: p95", f"{percentile(late, 0.95):.0f} ms", "50 ms"]
        )

        (tree / "many.yaml").write_text(ARRAY.format(runs=count))
        before, started = usage(pid), time.perf_counter()
        expect(measure(["apply", str(tree), "-y"], state=state))
        wall = time.perf_counter() - started
        wait_for("all ended", lambda: len(ends.seen) >= SINGLES + count)
        late = delays(hosts, ends, known)
        rows.append([f"apply of {count} jobs, one on each host", f"{wall:.1f} s", "10 s"])
        rows.append(["its processor in the controller",
                     f"{usage(pid).cpu_seconds - before.cpu_seconds:.1f} s", "-"])  # fmt: skip
        rows.append(
            [
                "end of a job in the ledger, meanwhile: p95",
                f"{percentile(late, 0.95):.0f} ms",
                "200 ms",
            ]
        )
        ends.end()

        time.sleep(5)
        before, ever = usage(pid), hosts.sessions()[1]
        hosts.cut()
        wall = wait_for("ready", lambda: _are_back(hosts, count, ever) and _ready(ledger) == count)
        rows.append(["all connections lost at once: all are ready", f"{wall:.1f} s", "20 s"])
        rows.append(["its processor in the controller",
                     f"{usage(pid).cpu_seconds - before.cpu_seconds:.1f} s", "8 s"])  # fmt: skip
        rows.append(["tries for each host", f"{(hosts.sessions()[1] - ever) / count:.2f}", "-"])
    return rows


def _are_back(hosts: Hosts, count: int, ever: int) -> bool:
    """
    Tell whether each host has a new session; `ever` is how many there were before.

    The controller writes that a host has lost its connection before it opens the next one, so a host that is
    `ready` from now on has said hello.
    """
    is_open, opened = hosts.sessions()
    return is_open == count and opened >= ever + count


def _ready(ledger: Path) -> int:
    """Return how many hosts are ready by the ledger."""
    with contextlib.closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as connection:
        (ready,) = connection.execute(
            "SELECT count(*) FROM instances WHERE state = 'ready'"
        ).fetchone()
    return int(ready)


def _apply_fleet(tree: Path, state: Path, hosts: Hosts, count: int) -> float:
    """Declare the first hosts, and wait until they are connected; returns seconds."""
    names = "".join(f"    - {address}\n" for address in addresses(count))
    fleet = FLEET.format(port=hosts.port, key=hosts.folder / "client", hosts=names)
    (tree / "fleet.yaml").write_text(fleet)
    started = time.perf_counter()
    expect(measure(["apply", str(tree), "-y"], state=state))
    wait_for("connected", lambda: hosts.sessions()[0] == count)
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
