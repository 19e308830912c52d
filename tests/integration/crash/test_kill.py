"""
`kill -9` at random moments, of real processes: the manager, the agents, the supervisors.

Each job writes a line to a file that nobody else touches when it starts and when it ends. That
file is the witness: it says whether a job ran twice, and whether one that is called done ran
to its end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fleetform.store.postgres.address import Address
from fleetform.store.postgres.connection import Connection
from leftovers import end_agents
from postgres_server import PASSWORD, PostgresServer, reason_missing

pytestmark = pytest.mark.waits

FLEETFORM = str(Path(sys.executable).with_name("fleetform"))
KILLS = 56
"""A seed; four seeds make more than two hundred."""

POSTGRES_KILLS = 44
"""
The same on PostgreSQL, two seeds: more than three hundred in all. A manager's successor waits for
the end of its lease there, so managers are killed less often.
"""

PATIENCE_SECONDS = 900.0
"""It takes one to two minutes; a machine that is slow and does much else takes ten."""

FLEET = "type: fleet\nname: pair\nnodes: 2\nlocal: {cpu: 12, memory: 64GB}\n"
TASK = """\
type: task
name: many
array: 1-80
commands:
  - echo "start $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
  - sleep $((RANDOM % 2)).$((RANDOM % 9))
  - echo "end $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
shell: bash
env:
  WITNESS: {witness}
fleets: [pair]
resources: {{cpu: 1}}
retry:
  on: [error, interruption, node-failure]
  max_attempts: 50
---
type: task
name: gang
array: 1-10
nodes: 2
commands:
  - echo "start $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
  - sleep $((RANDOM % 2)).$((RANDOM % 9))
  - echo "end $FLEETFORM_RUN_UID $FLEETFORM_ATTEMPT $FLEETFORM_NODE_RANK" >> "$WITNESS"
shell: bash
env:
  WITNESS: {witness}
fleets: [pair]
resources: {{cpu: 2}}
retry:
  on: [error, interruption, node-failure]
  max_attempts: 50
"""


class Arena:
    """A tree, a state folder, and the processes that belong to them; maybe a database server."""

    def __init__(self, folder: Path, seed: int, server: PostgresServer | None = None) -> None:
        self.random = random.Random(seed)
        self.server = server
        self.state = folder / "state"
        self.tree = folder / "tree"
        self.witness = folder / "witness"
        self.witness.touch()
        self.tree.mkdir()
        (self.tree / "environment.yaml").write_text(
            f"type: environment\nname: crash\nuid: {self.random.randbytes(16).hex()}\n"
        )
        (self.tree / "fleet.yaml").write_text(FLEET)
        self.kills: Counter[str] = Counter()
        self.rounds = 0
        self.manager: subprocess.Popen[bytes] | None = None
        self.log = (folder / "apply.log").open("ab")
        self.environment = {**os.environ, "FLEETFORM_STATE_HOME": str(self.state)}
        if server is not None:
            self.environment["FLEETFORM_LEDGER"] = server.url

    def fleetform(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [FLEETFORM, *arguments, str(self.tree)],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def start_manager(self) -> None:
        self.manager = subprocess.Popen(
            [FLEETFORM, "apply", str(self.tree), "-y"],
            env=self.environment,
            stdout=self.log,
            stderr=self.log,
            stdin=subprocess.DEVNULL,
        )

    def manager_is_at_work(self) -> bool:
        """Tell whether it has said hello: jobs of this arena run."""
        return bool(self.supervisors())

    def submit(self) -> None:
        (self.tree / "tasks.yaml").write_text(TASK.format(witness=self.witness))

    def kill_something(self) -> None:
        if self.server is None:
            kind = self.random.choices(["manager", "agent", "supervisor"], [2, 4, 4])[0]
        else:
            kinds = ["manager", "agent", "supervisor", "backend"]
            kind = self.random.choices(kinds, [1, 4, 4, 2])[0]
        if kind == "backend":
            assert self.server is not None
            self.kills[kind] += end_a_backend(self.server, self.random)
            return
        if kind == "manager":
            assert self.manager is not None
            victims = [self.manager.pid] if self.manager.poll() is None else []
        elif kind == "agent":
            victims = self.agents()
        else:
            victims = self.supervisors()
        if not victims:
            return
        try:
            os.kill(self.random.choice(victims), signal.SIGKILL)
        except ProcessLookupError:
            return
        self.kills[kind] += 1

    def agents(self) -> list[int]:
        """Daemons of this arena, by the ids that they wrote down."""
        found = []
        for file in self.state.glob("hosts/*/*/agent.pid"):
            text = file.read_text().split()
            if text and _command_line(int(text[0])).find(str(self.state)) >= 0:
                found.append(int(text[0]))
        return found

    def supervisors(self) -> list[int]:
        """Parents of this arena's job processes: only a supervisor holds a job's lock."""
        jobs = [pid for pid in _processes() if str(self.witness) in _environment(pid)]
        parents = {_parent(pid) for pid in jobs}
        # Where a job's parent has died, somebody else is it now, and none of ours.
        ours = {pid for pid in parents if str(self.state) in _command_line(pid)}
        return sorted(ours - set(jobs) - set(self.agents()))

    def orphans(self) -> list[int]:
        return [pid for pid in _processes() if str(self.witness) in _environment(pid)]

    def runs(self) -> list[dict[str, object]]:
        done = self.fleetform("ps", "--json", "--all")
        assert done.returncode == 0, done.stderr
        listed = json.loads(done.stdout)
        return listed["runs"] if isinstance(listed, dict) else listed

    def close(self) -> None:
        if self.manager is not None and self.manager.poll() is None:
            self.manager.kill()
            self.manager.wait()
        # An apply whose server fell over may have left a background controller.
        end_agents(self.state)
        self.log.close()


@pytest.fixture
def arena(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Arena]:
    arena = Arena(tmp_path, request.param)
    yield arena
    arena.close()


@pytest.fixture
def postgres_arena(
    tmp_path: Path, request: pytest.FixtureRequest, need: Callable[[str, bool, str], None]
) -> Iterator[Arena]:
    """On a server of its own, which is to fall over."""
    reason = reason_missing()
    need("postgresql", not reason, reason)
    server = PostgresServer()
    arena = Arena(tmp_path, request.param, server)
    yield arena
    arena.close()
    server.close()


@pytest.mark.crash
@pytest.mark.parametrize("arena", [1, 2, 3, 4], indirect=True)
def test_no_job_is_lost_and_none_starts_twice(
    arena: Arena, summarise: Callable[[str], None]
) -> None:
    """Through dozens of kills every run ends done, no job key runs twice, nothing is left over."""
    _through(arena, KILLS, time.monotonic() + PATIENCE_SECONDS)
    _tell(arena, summarise, "crash test")


@pytest.mark.crash
@pytest.mark.parametrize("postgres_arena", [11, 12], indirect=True)
def test_nor_on_postgresql(postgres_arena: Arena, summarise: Callable[[str], None]) -> None:
    """The same where the server's processes are ended too, and the whole server falls over."""
    arena, server = postgres_arena, postgres_arena.server
    assert server is not None
    deadline = time.monotonic() + PATIENCE_SECONDS
    _through(arena, POSTGRES_KILLS // 2, deadline, is_end=False)
    # As in a power cut: what was committed is in its log, and nothing else.
    server.stop("immediate")
    arena.kills["server"] += 1
    server.start()
    _through(arena, POSTGRES_KILLS, deadline)
    _tell(arena, summarise, "crash test on PostgreSQL")
    assert PASSWORD not in Path(arena.log.name).read_text(errors="replace")


def _tell(arena: Arena, summarise: Callable[[str], None], title: str) -> None:
    kinds = ", ".join(f"{count} {kind}s" for kind, count in sorted(arena.kills.items()))
    summarise(
        f"{title}: {arena.kills.total()} kills ({kinds}), "
        f"{len(arena.runs())} runs done, none lost, none twice, no orphan"
    )


def _through(arena: Arena, kills: int, deadline: float, *, is_end: bool = True) -> None:
    if arena.manager is None:
        arena.submit()
        arena.start_manager()
    round_number = arena.rounds
    while arena.kills.total() < kills:
        assert time.monotonic() < deadline, _tail(arena)
        # A manager that has just begun gets the time to find its hosts, mostly.
        time.sleep(arena.random.uniform(0.02, 0.4 if arena.manager_is_at_work() else 2.0))
        arena.kill_something()
        assert arena.manager is not None
        if arena.manager.poll() is not None:
            if arena.manager.returncode == 0:
                # All done before enough was killed: the same again, as new runs.
                arena.rounds = round_number = round_number + 1
                tasks = (arena.tree / "tasks.yaml").read_text()
                tasks = tasks.replace("shell: bash", f"shell: bash\nrerun: {round_number}")
                tasks = tasks.replace(
                    f"rerun: {round_number}\nrerun: {round_number - 1}", f"rerun: {round_number}"
                )
                (arena.tree / "tasks.yaml").write_text(tasks)
            arena.start_manager()
    if is_end:
        _finish(arena, deadline)
        _judge(arena)


def end_a_backend(server: PostgresServer, chance: random.Random) -> int:
    """End one of the server's processes that work for us; returns how many it were."""
    connection = Connection(Address.parse(server.url), schema="public", who="test")
    try:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE application_name = 'fleetform'"
        ).fetchall()
        if not rows:
            return 0
        connection.execute("SELECT pg_terminate_backend(?)", chance.choice(rows))
        return 1
    finally:
        connection.close()


def _finish(arena: Arena, deadline: float) -> None:
    while True:
        assert arena.manager is not None
        assert time.monotonic() < deadline, _tail(arena)
        try:
            code = arena.manager.wait(timeout=max(1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"apply does not end:\n{_tail(arena)}") from None
        if code == 0:
            return
        # It may say that its connection was ended; then the same command again is what helps.
        was_cut_off = arena.server is not None and "does not answer" in _tail(arena)[-400:]
        assert code < 0 or was_cut_off, f"apply ended with {code}:\n{_tail(arena)}"
        arena.start_manager()


def _judge(arena: Arena) -> None:
    starts: Counter[tuple[str, ...]] = Counter()
    ends: Counter[tuple[str, ...]] = Counter()
    for line in arena.witness.read_text().splitlines():
        word, *key = line.split()
        (starts if word == "start" else ends)[tuple(key)] += 1
    twice = {key: count for key, count in starts.items() if count > 1}
    assert not twice, f"started twice: {twice}"
    runs = arena.runs()
    states = Counter(str(run["state"]) for run in runs)
    assert set(states) == {"done"}, states
    for run in runs:
        ended = [key for key in ends if key[0] == run["uid"]]
        assert ended, f"{run['name']} is called done and never ended"
    left = arena.orphans()
    assert not left, f"orphans: {[(pid, _command_line(pid)) for pid in left]}"


def _tail(arena: Arena) -> str:
    arena.log.flush()
    return Path(arena.log.name).read_text(errors="replace")[-6000:]


def _processes() -> list[int]:
    return [int(name) for path in Path("/proc").iterdir() if (name := path.name).isdigit()]


def _environment(pid: int) -> str:
    return _read(pid, "environ")


def _command_line(pid: int) -> str:
    return _read(pid, "cmdline")


def _parent(pid: int) -> int:
    status = _read(pid, "stat")
    return int(status.rpartition(")")[2].split()[1]) if status else 0


def _read(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:
        return ""
