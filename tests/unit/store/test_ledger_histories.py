"""
Histories of a ledger drawn at random: what must hold after every transaction.

A history is a list of moves of a scheduler, of hosts and of people, most of which make sense and
some of which do not. The judge reads the rows and knows nothing of how they were written.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from contract.ledgers import ENVIRONMENT, CountingIds, Desk, StillClock, step, submit_step
from fleetform.agents.protocol.messages import JobRecord
from fleetform.agents.protocol.states import ORDER, Cause, JobState
from fleetform.model.decision import AllPrepared, Finish, Requeue, Share, StopGang
from fleetform.model.run import FINAL, RunState
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import open_ledger
from fleetform.store.reads import open_snapshot

NAMES = ("a", "b", "g", "h")
NODES = {"a": 1, "b": 1, "g": 2, "h": 2}
VERDICTS = (
    AllPrepared(),
    StopGang("stopped", "by anna"),
    Requeue(0, "node-failure", ""),
    Finish(RunState.DONE, "exited", ""),
)

placing = st.tuples(
    st.just("place"), st.sampled_from(NAMES), st.sampled_from(["GPU-0", "GPU-1"]), st.integers(0, 9)
)
saying = st.tuples(
    st.just("say"), st.sampled_from(NAMES), st.sampled_from(list(JobState)[2:]), st.integers(0, 1)
)
repeating = st.tuples(st.just("repeat"), st.integers(0, 30))
deciding = st.tuples(st.just("decide"), st.sampled_from(NAMES), st.sampled_from(VERDICTS))
rebooting = st.tuples(st.just("reboot"), st.integers(0, 1))
silencing = st.tuples(st.just("silence"), st.integers(0, 1))
asking = st.tuples(st.just("ask"), st.sampled_from(["stop", "rerun"]), st.sampled_from(NAMES))
moves = st.lists(
    # Placing and saying more often: most histories should come to running jobs.
    st.one_of(placing, placing, saying, saying, repeating, deciding, rebooting, silencing, asking),
    max_size=25,
)


class History:
    """Plays moves on a ledger; remembers what hosts have said, to say it again."""

    def __init__(self, ledger: StoredLedger) -> None:
        self.desk = Desk.of(ledger, nodes=2, cpus=4)
        self.desk.submit(*(submit_step(name, nodes=NODES[name]) for name in NAMES))
        self._said: list[tuple[int, JobRecord]] = []
        self._boots = 1

    def play(self, move: tuple[object, ...]) -> None:
        getattr(self, f"_{move[0]}")(*move[1:])

    def _place(self, name: str, gpu: str, hosts: int) -> None:
        shares: list[Share] = [
            self.desk.share(rank, on=(hosts + rank) % 2, gpus=(gpu,)) for rank in range(NODES[name])
        ]
        port = 20_000 + hosts % 2 if NODES[name] > 1 else None
        # Twice at once: the second must miss.
        self.desk.commit(*[self.desk.placement(name, shares, port)] * 2)

    def _say(self, name: str, state: JobState, rank: int) -> None:
        rank = min(rank, NODES[name] - 1)
        (history,) = self.desk.ledger.read_runs([name])
        host = history.attempts[-1].jobs[rank].instance_uid
        if host:
            on = self.desk.instances.index(host)
            record = self.desk.record(name, state, rank=rank)
            self._said.append((on, record))
            self.desk.say(record, on=on)

    def _repeat(self, which: int) -> None:
        if self._said:
            on, record = self._said[which % len(self._said)]
            self.desk.say(record, record, on=on)

    def _decide(self, name: str, verdict: object) -> None:
        self.desk.decide(name, verdict)

    def _reboot(self, host: int) -> None:
        self._boots += 1
        self.desk.greet(self.desk.instances[host], boot=f"boot-{self._boots}", cpus=4)

    def _silence(self, host: int) -> None:
        self.desk.ledger.mark_instance(
            self.desk.instances[host], state="unreachable", message="", now_ms=self.desk.now_ms
        )

    def _ask(self, what: str, name: str) -> None:
        if what == "stop":
            self.desk.submit(step("run.stop", name, cause="state"))
        elif self.desk.run(name).state in FINAL:
            self.desk.submit(submit_step(name, nodes=NODES[name]))


def judge(connection: sqlite3.Connection) -> None:
    """Assert what must hold of the rows, whatever happened."""
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    assert not broken, broken
    # Units belong to jobs that are not proved dead, each to one.
    held = connection.execute(
        "SELECT u.instance_uid, u.unit, j.state FROM units u JOIN allocations a"
        " ON a.job_uid = u.job_uid JOIN jobs j ON j.uid = a.job_uid"
    ).fetchall()
    assert len({row[:2] for row in held}) == len(held)
    assert all(state != "finished" for *_, state in held)
    # Who may run holds its allocation, and nobody holds more than there is.
    unheld = connection.execute(
        "SELECT j.uid FROM jobs j LEFT JOIN allocations a ON a.job_uid = j.uid"
        " WHERE (j.state IN ('waiting', 'finished')) <> (a.job_uid IS NULL)"
    ).fetchall()
    assert not unheld
    crowded = connection.execute(
        "SELECT i.uid FROM instances i JOIN allocations a ON a.instance_uid = i.uid"
        " GROUP BY i.uid HAVING sum(a.cpu_millicores) > i.cpu_millicores"
    ).fetchall()
    assert not crowded
    # No two gangs of which a job may run have the same port.
    doubled = connection.execute(
        "SELECT a.master_port FROM attempts a WHERE a.master_port IS NOT NULL AND EXISTS"
        " (SELECT 1 FROM jobs j WHERE j.run_uid = a.run_uid AND j.attempt = a.number"
        " AND j.state <> 'finished') GROUP BY a.master_port HAVING count(*) > 1"
    ).fetchall()
    assert not doubled
    # A run has one attempt that is not over, its latest, with a job a node.
    for attempt, latest, nodes, jobs, state, final in connection.execute(
        "SELECT a.number, r.attempt, r.nodes, count(j.rank), a.state, r.final FROM attempts a"
        " JOIN runs r ON r.uid = a.run_uid JOIN jobs j"
        " ON j.run_uid = a.run_uid AND j.attempt = a.number GROUP BY a.run_uid, a.number"
    ):
        assert jobs == nodes
        assert attempt <= latest
        assert (state == "finished") == (attempt < latest or bool(final))
    # No second attempt may run while a job of an earlier one may.
    overlap = connection.execute(
        "SELECT 1 FROM jobs j JOIN runs r ON r.uid = j.run_uid"
        " WHERE j.attempt < r.attempt AND j.state <> 'finished'"
    ).fetchall()
    assert not overlap
    finals = {str(state) for state in FINAL}
    for state, final, finished_at_ms in connection.execute(
        "SELECT state, final, finished_at_ms FROM runs"
    ):
        assert (state in finals) == bool(final) == (finished_at_ms is not None)
    # One listed run a name, and the resource points to it.
    lost = connection.execute(
        "SELECT s.name FROM resources s LEFT JOIN runs r ON r.uid = s.uid AND r.listed = 1"
        " WHERE s.kind = 'run' AND r.uid IS NULL"
    ).fetchall()
    assert not lost


@contextmanager
def new_ledger() -> Iterator[tuple[Path, StoredLedger]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        ledger = open_ledger(path, ENVIRONMENT, CountingIds(), StillClock())
        # Durability is not what is tested here, and syncs are most of the time.
        ledger._database.connection.execute("PRAGMA synchronous = OFF")
        yield path, ledger
        ledger.close()


@given(moves)
@settings(max_examples=60, deadline=None)
def test_invariants_after_every_move(drawn: list[tuple[object, ...]]) -> None:
    """No unit is held twice, no attempt overlaps another, and rows agree, after every move."""
    with new_ledger() as (_, ledger):
        history = History(ledger)
        for move in drawn:
            history.play(move)
            judge(ledger._database.connection)


@given(moves)
@settings(max_examples=30, deadline=None)
def test_jobs_only_move_forward(drawn: list[tuple[object, ...]]) -> None:
    """No move takes a job back, lowers its gen, or changes how it ended."""

    def states(ledger: StoredLedger) -> dict[str, tuple[int, int, Cause | None]]:
        return {
            job.uid: (ORDER[job.state], job.gen, job.cause)
            for one in ledger.read_runs(earlier=True)
            for attempt in one.attempts
            for job in attempt.jobs
        }

    with new_ledger() as (_, ledger):
        history = History(ledger)
        before = states(ledger)
        for move in drawn:
            history.play(move)
            after = states(ledger)
            for uid, (state, gen, cause) in before.items():
                assert after[uid][0] >= state
                assert after[uid][1] >= gen
                assert cause is None or after[uid][2] is cause
            before = after


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(list(JobState)[4:])), min_size=1),
    st.randoms(use_true_random=False),
)
@settings(max_examples=40, deadline=None)
def test_order_of_records_is_irrelevant(said: list[tuple[int, JobState]], random: object) -> None:
    """The same records, doubled and in another order and other batches, leave the same jobs."""
    outcomes = []
    for shuffled in (False, True):
        with new_ledger() as (_, ledger):
            desk = Desk.of(ledger)
            names = ["x", "y", "z"]
            desk.submit(*(submit_step(name) for name in names))
            desk.place_all(*((name, [desk.share()]) for name in names))
            records = [desk.record(names[which], state) for which, state in said]
            if shuffled:
                records = records * 2
                random.shuffle(records)
                for record in records:
                    desk.say(record)
            else:
                desk.say(*records)
            outcomes.append(
                [
                    (job.state, job.cause, job.exit_code)
                    for one in ledger.read_runs()
                    for job in one.attempts[0].jobs
                ]
            )
    assert outcomes[0] == outcomes[1]


@given(moves)
@settings(max_examples=20, deadline=None)
def test_snapshot_agrees_with_the_ledger(drawn: list[tuple[object, ...]]) -> None:
    """The read path gives what the ledger gives, after any history."""
    with new_ledger() as (path, ledger):
        history = History(ledger)
        for move in drawn:
            history.play(move)
        snapshot = open_snapshot(path, ENVIRONMENT)
        assert snapshot.read_live() == ledger.read_live()
        assert snapshot.read_book() == ledger.read_book()
        uids = list(ledger.read_book().runs)[:2]
        assert snapshot.read_book(uids) == ledger.read_book(uids)
        assert snapshot.read_runs(earlier=True) == ledger.read_runs(earlier=True)
        assert snapshot.read_events() == ledger.read_events()
        snapshot.close()


@given(moves)
@settings(max_examples=15, deadline=None)
def test_crash_between_transactions(drawn: list[tuple[object, ...]]) -> None:
    """A copy of the file taken after any transaction opens, is sound, and has all of it."""
    with new_ledger() as (path, ledger), tempfile.TemporaryDirectory() as folder:
        history = History(ledger)
        for number, move in enumerate(drawn):
            history.play(move)
            crashed = Path(folder) / str(number) / "ledger.db"
            crashed.parent.mkdir()
            for file in path.parent.glob("ledger.db*"):
                if not file.name.endswith("-shm"):
                    shutil.copy(file, crashed.parent)
            survivor = open_ledger(crashed, ENVIRONMENT, CountingIds(10_000), StillClock())
            judge(survivor._database.connection)
            assert survivor.read_live() == ledger.read_live()
            assert survivor.read_book() == ledger.read_book()
            survivor.close()
