"""An environment whose fleet is the hosts of a lab, and what its jobs say about themselves."""

from __future__ import annotations

import contextlib
import itertools
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from integration.ledger.lab import Lab
from lab import Lab as Hosts

KEEPALIVE_SECONDS = 1.0
"""Silence is noticed after 3 s instead of 45 s; what follows is the same."""

CONNECT_SECONDS = 3.0

CLOCK = "TEST_CLOCK"
"""Names a file with seconds that the clock of a controller is wrong by."""

RELEASE = "TEST_RELEASE"
"""Makes a controller bring an agent of another release: the same code, with this name in it."""

_CONTROLLER = f"""\
import io, os, sys, time, zipfile

true_time_ns = time.time_ns

def wrong_time_ns():
    try:
        with open(os.environ["{CLOCK}"]) as file:
            return true_time_ns() + int(file.read()) * 10**9
    except (OSError, ValueError):
        return true_time_ns()

if "{CLOCK}" in os.environ:
    time.time_ns, time.time = wrong_time_ns, lambda: wrong_time_ns() / 10**9

from fleetform.cli.main import main
from fleetform.providers.ssh.hosts import SshHosts
from fleetform.providers.ssh.setup import Bundle

true_bundle = SshHosts._make_bundle

def other_bundle(self):
    content = io.BytesIO(true_bundle(self).content)
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("release", os.environ["{RELEASE}"])
    data = content.getvalue()
    return Bundle(data, __import__("hashlib").sha256(data).hexdigest())

if "{RELEASE}" in os.environ:
    SshHosts._make_bundle = other_bundle
SshHosts.__init__.__kwdefaults__.update(
    keepalive_seconds={KEEPALIVE_SECONDS}, connect_seconds={CONNECT_SECONDS}
)
sys.exit(main())
"""

# Each line has the clock of this machine, which all hosts of a lab share. What a job prints is
# numbered, so that a line that is missing or comes twice shows.
_JOB = """\
type: task
name: {name}
shell: bash
commands:
  - say() {{ echo "$EPOCHREALTIME {name} $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK $1" >> {witness}; }}
  - say start
  - n=0; until [ -e {gate} ]; do n=$((n + 1)); echo "line $n"; say works; sleep 0.1; done
  - echo "last $n"; say end
{more}"""


class Said(NamedTuple):
    """A line that a job wrote on its host."""

    at: float
    run: str
    attempt: int
    rank: int
    word: str
    host: str


class Environment(Lab):
    """
    An environment over SSH. Its jobs work until their gate opens.

    `hosts` is the running lab; files of its hosts are read from their disks, also while they are
    off or cut off.
    """

    def __init__(self, folder: Path, hosts: Hosts) -> None:
        super().__init__(folder)
        self.hosts = hosts

    def take_uid(self, uid: str) -> None:
        super().take_uid(uid)
        with (self.tree / "environment.yaml").open("a", encoding="utf-8") as file:
            file.write("grants: {root: true}\n")

    # -- the configuration --------------------------------------------------------------------

    def fleet(self, *hosts: str) -> str:
        """Write a fleet whose hosts run one job at a time; root applies it, and its jobs run as root."""
        names = ", ".join(hosts)
        how = "sharing: whole\nrun_as: root"
        return f"type: fleet\nname: lab\n{how}\nssh_config:\n  hosts: [{names}]\n"

    def job(self, name: str, more: str = "") -> str:
        """Write a task that works until `open_gate(name)`."""
        witness, gate = f"/root/{self.uid}.said", f"/root/{self.uid}.{name}"
        return _JOB.format(name=name, witness=witness, gate=gate, more=more)

    # -- the hosts ----------------------------------------------------------------------------

    def disk(self, host: str) -> Path:
        """The home folder of root on a host."""
        return self.hosts.directory / "hosts" / host / "root/root"

    def agent(self, host: str) -> Path:
        """The folder of this environment's agent."""
        return self.disk(host) / f".local/state/fleetform/hosts/{self.uid}/{host}"

    def open_gate(self, name: str) -> None:
        for host in self.hosts.hosts:
            (self.disk(host) / f"{self.uid}.{name}").touch()

    def witnesses(self, run: str = "") -> list[Said]:
        """Return what jobs said, in order of time; of one run, or of all."""
        lines = []
        for host in self.hosts.hosts:
            path = self.disk(host) / f"{self.uid}.said"
            for line in path.read_text().splitlines() if path.exists() else ():
                at, name, attempt, rank, word = line.split()
                lines.append(Said(float(at), name, int(attempt), int(rank), word, host))
        return sorted(line for line in lines if run in {"", line.run})

    def starts(self, run: str) -> list[tuple[int, int]]:
        """Return attempt and rank of each start, sorted."""
        return sorted((one.attempt, one.rank) for one in self.witnesses(run) if one.word == "start")

    def ends(self, run: str) -> list[tuple[int, int]]:
        return sorted((one.attempt, one.rank) for one in self.witnesses(run) if one.word == "end")

    def wait_for_start(self, run: str, attempt: int = 1, rank: int = 0) -> Said:
        """Wait until a job works; returns what it said then."""

        def works() -> list[Said]:
            return [
                one
                for one in self.witnesses(run)
                if (one.attempt, one.rank, one.word) == (attempt, rank, "works")
            ]

        self.wait_until(lambda: bool(works()), f"attempt {attempt} of {run}")
        return works()[0]

    def wait_for_work(self, run: str, rank: int = 0) -> None:
        """Wait until a job has gone on working after this call."""

        def count() -> int:
            return sum(one.rank == rank for one in self.witnesses(run))

        before = count()
        self.wait_until(lambda: count() > before + 1, f"work of {run}")

    def install_id(self, host: str) -> str:
        """Return the identity that the ledger knows of a host's agent."""
        with contextlib.closing(sqlite3.connect(self.ledger)) as ledger:
            query = "SELECT install_id FROM instances WHERE name = ? AND state <> 'terminated'"
            return str(ledger.execute(query, (host,)).fetchone()[0])

    # -- the program --------------------------------------------------------------------------

    def control(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Start a command that notices silence soon; whatever is left of it at the end is killed."""
        return self._control(subprocess.PIPE, arguments, variables)

    def control_into(self, output: IO[bytes], *arguments: str) -> subprocess.Popen[str]:
        """As `control`; what the command prints goes to a file."""
        return self._control(output, arguments, {})

    def _control(
        self, output: IO[bytes] | int, arguments: Sequence[str], variables: Mapping[str, str]
    ) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", _CONTROLLER, *arguments],
            cwd=self.tree,
            env=self.variables() | dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._children.append(child)
        return child

    def apply(self, *documents: str) -> subprocess.Popen[str]:
        """Declare documents and apply them; the command drives the runs to their end."""
        self.declare(*documents)
        return self.control("apply", "-y")

    def serve(self, *documents: str, **variables: str) -> subprocess.Popen[str]:
        """Declare documents and serve them: unlike `apply`, it waits for a silent host for ever."""
        self.declare(*documents)
        return self.control("serve", **variables)

    def wait_for_done(self, serve: subprocess.Popen[str], name: str) -> None:
        """Wait until `serve` has brought a run to its end, and end it."""
        self.wait_until_state(name, "done")
        # Its units are free and its output has come a moment later.
        self.wait_until(lambda: self.allocations() == 0, "free units")
        self.wait_until(lambda: "last" in self.run("logs", name).stdout, "the whole output")
        serve.terminate()
        wait_for_exit(self, serve)

    def host_states(self) -> dict[str, str]:
        """Return the state of each host that `fleet show` lists."""
        return {one["name"]: one["state"] for one in self.json("fleet", "show", "lab")["instances"]}

    def wait_until_host(self, host: str, state: str) -> None:
        self.wait_until(lambda: self.host_states().get(host) == state, f"host {host} {state}")

    def wait_until_printed(self, *command: str, text: str) -> str:
        """Wait until a command prints a text; returns all of it."""
        printed = ""

        def is_printed() -> bool:
            nonlocal printed
            printed = self.run(*command).stdout
            return text in printed

        self.wait_until(is_printed, text)
        return printed

    def allocations(self) -> int:
        """Count the units of hosts that jobs have."""
        with contextlib.closing(sqlite3.connect(self.ledger)) as ledger:
            return int(ledger.execute("SELECT count(*) FROM allocations").fetchone()[0])

    def job_states(self) -> list[str]:
        """Return the states of all jobs in the ledger, sorted."""
        with contextlib.closing(sqlite3.connect(self.ledger)) as ledger:
            return sorted(state for (state,) in ledger.execute("SELECT state FROM jobs"))

    def fault_counts(self) -> tuple[int, int, int]:
        """Count the jobs that started, those that are called done and did not end, and second starts."""
        starts = [
            (one.run, one.attempt, one.rank) for one in self.witnesses() if one.word == "start"
        ]
        ends = {one.run for one in self.witnesses() if one.word == "end"}
        lost = sum(state == "done" and name not in ends for name, state in self.states().items())
        return len(starts), lost, len(starts) - len(set(starts))

    # -- what must hold after each fault --------------------------------------------------------

    def check_run(self, name: str, state: str = "done", attempts: int = 1, ranks: int = 1) -> None:
        """
        Check a run that is over: none of its jobs ran twice, none was lost, its output is whole.

        Args:
            state: The state that it must have.
            attempts: Number of its attempts, all of which started.
            ranks: Number of its ranks.
        """
        assert self.states()[name] == state
        everyone = [(attempt, rank) for attempt in range(1, attempts + 1) for rank in range(ranks)]
        assert self.starts(name) == everyone
        if state == "done":
            last = [(attempts, rank) for rank in range(ranks)]
            assert [one for one in self.ends(name) if one[0] == attempts] == last
        said = self.witnesses(name)
        # Sorted by time, so an attempt that began before the end of another one shows.
        assert [one.attempt for one in said] == sorted(one.attempt for one in said)
        for rank in range(ranks) if state == "done" else ():
            self._check_output(name, self.run("logs", name, "--rank", str(rank)).stdout)

    def _check_output(self, name: str, output: str) -> None:
        lines = output.splitlines()
        count = len(lines) - 1
        assert lines == [*(f"line {n}" for n in range(1, count + 1)), f"last {count}"], name

    def check_nothing_shared(self) -> None:
        """Check that no host had jobs of two runs at a time, and that all units are free."""
        assert self.allocations() == 0
        for host in self.hosts.hosts:
            runs = [one.run for one in self.witnesses() if one.host == host]
            turns = [run for run, _ in itertools.groupby(runs)]
            assert len(turns) == len(set(turns)), f"{host}: {turns}"


def wait_for_exit(environment: Environment, child: subprocess.Popen[str], code: int = 0) -> str:
    """Wait until a command ends, with this exit code; returns what it printed."""
    found, output = environment.finish(child)
    assert found == code, output
    return output
