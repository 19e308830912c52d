"""Runs on several nodes over SSH hosts, from `fleetform apply` to what the ranks say."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from forkserver import program
from lab import Lab
from leftovers import end_agents, end_background, end_manager

PATIENCE_SECONDS = 90.0

ENVIRONMENT = """\
type: environment
name: lab
uid: %s
grants: {root: true}
"""

FLEET = """\
type: fleet
name: pair
placement: cluster
run_as: root
ssh_config:
  hosts:
    - hostname: node1
    - {hostname: node2, internal_ip: %s}
---
type: fleet
name: shares
local: {cpu: 2, memory: 2GB}
nodes: 2
placement: cluster
"""

MEET = r"""
import os, pathlib, socket, sys, time

rank, master = os.environ["FLEETFORM_NODE_RANK"], os.environ["FLEETFORM_MASTER_NODE_IP"]
port = int(os.environ["FLEETFORM_MASTER_PORT"])
if rank == "0":
    with socket.create_server((master, port)) as door:
        # The runs that are named go on when rank 0 of each listens, on this host.
        pathlib.Path("/root", os.environ["FLEETFORM_RUN_NAME"]).touch()
        while not all(pathlib.Path("/root", name).exists() for name in sys.argv[1:]):
            time.sleep(0.05)
        peer, (address, _) = door.accept()
        with peer, peer.makefile("rw") as line:
            print(f"{line.readline().strip()} at {address}", flush=True)
            line.write(f"{socket.gethostname()}\n")
else:
    while True:
        try:
            peer = socket.create_connection((master, port))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    with peer, peer.makefile("rw") as line:
        line.write(f"{socket.gethostname()}\n")
        line.flush()
        print(f"{line.readline().strip()} at {master}")
"""


class Pair:
    """An environment with a fleet of the lab's two hosts and one of this machine, as people use it."""

    def __init__(self, folder: Path, home: Path, lab: Lab) -> None:
        self.lab = lab
        self.state = folder / "state"
        self._home = home
        self._tree = folder / "tree"
        self._tree.mkdir()
        self.write("environment.yaml", ENVIRONMENT % uuid.uuid4().hex)
        self.write("fleet.yaml", FLEET % lab.hosts["node2"])

    def write(self, name: str, text: str) -> None:
        (self._tree / name).write_text(text)

    def run(self, *arguments: str, status: int = 0) -> str:
        done = subprocess.run(
            [program(), *arguments],
            cwd=self._tree,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self._home),
                "FLEETFORM_STATE_HOME": str(self.state),
                "FLEETFORM_CACHE_HOME": "",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def started_ms(self, run: str) -> list[int]:
        """Return when each rank started, as its host noted it; all hosts here have one clock."""
        (ledger,) = self.state.glob("environments/*/ledger.db")
        with contextlib.closing(sqlite3.connect(ledger)) as connection:
            rows = connection.execute(
                "SELECT j.started_at_ms FROM jobs j JOIN runs r ON r.uid = j.run_uid"
                " WHERE r.name = ? ORDER BY j.rank",
                (run,),
            )
            return [moment for (moment,) in rows]

    def output(self, run: str, rank: int) -> list[str]:
        return self.run("logs", run, "--rank", str(rank)).splitlines()


@pytest.fixture
def pair(tmp_path: Path, home: Path, hosts: Lab) -> Iterator[Pair]:
    made = Pair(tmp_path, home, hosts)
    try:
        yield made
    finally:
        # Agents and jobs on its hosts end with the lab.
        end_manager(made.state)
        end_background(made.state)
        end_agents(made.state)


def task(name: str, *commands: str, **fields: object) -> str:
    """A document of a run on both hosts of `pair`, unless `fleets` says another fleet."""
    document = {"type": "task", "name": name, "nodes": 2, "fleets": ["pair"], **fields}
    return json.dumps({**document, "commands": commands})


def test_the_ranks_meet_at_the_master_address(pair: Pair) -> None:
    """Both have the hosts' own addresses, one of which is declared, and a file of them in order."""
    pair.write("meet.py", MEET)
    says = 'echo "$FLEETFORM_NODES_IPS"; cat "$FLEETFORM_HOSTFILE" "$DSTACK_MPI_HOSTFILE"'
    pair.write("task-meet.yaml", task("meet", says, "python3 meet.py", files=["meet.py"]))
    pair.run("apply", "-y")
    addresses = [pair.lab.hosts["node1"], pair.lab.hosts["node2"]]
    hostfile = [f"{address} slots=1" for address in addresses]
    first, second = (pair.output("meet", rank) for rank in (0, 1))
    assert first == [*addresses, *hostfile, *hostfile, f"node2 at {addresses[1]}"]
    assert second == [*addresses, *hostfile, *hostfile, f"node1 at {addresses[0]}"]


def test_two_runs_on_the_same_hosts_listen_on_ports_of_their_own(pair: Pair) -> None:
    """Both ranks 0 are on one host and listen at the same time; all ranks of a run know its port."""
    pair.write("meet.py", MEET)
    names = ("first", "second")
    commands = ('echo "$FLEETFORM_MASTER_PORT"', f"python3 meet.py {' '.join(names)}")
    small = {"cpu": 1, "memory": "64MB"}
    for name in names:
        document = task(name, *commands, files=["meet.py"], resources=small)
        pair.write(f"task-{name}.yaml", document)
    assert "2 runs succeeded" in pair.run("apply", "-y")
    ports = set()
    for name in names:
        (port, met), (other_port, other_met) = (pair.output(name, rank) for rank in (0, 1))
        assert port == other_port
        assert (met.split()[0], other_met.split()[0]) == ("node2", "node1")
        ports.add(port)
    assert len(ports) == 2


@pytest.mark.parametrize("fleet", ["pair", "shares"])
def test_nodes_start_in_the_declared_order_and_the_master_ends_the_run(
    pair: Pair, fleet: str
) -> None:
    """The second one starts when the first has; a worker that would go on is stopped."""
    waits = 'test "$FLEETFORM_NODE_RANK" = 0 || sleep 1000'
    for order in ("master-first", "workers-first"):
        document = task(
            order, waits, fleets=[fleet], startup_order=order, stop_criteria="master-done"
        )
        pair.write(f"task-{order}.yaml", document)
        assert "1 run succeeded" in pair.run("apply", "-y")
        master, worker = pair.started_ms(order)
        if order == "workers-first":
            assert worker <= master
        else:
            # The run may be over before the worker has started.
            assert worker is None or master <= worker
