"""
Writes what `lifecycle` decided about runs.

A decision was made from rows read a moment ago. One that no longer applies is dropped silently: the next round decides
again from the current rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fleetform.model.decision import AllPrepared, Finish, Next, Requeue, StopGang, Wait
from fleetform.model.run import FINAL, RunState, RunUid
from fleetform.store.database import Transaction, to_json
from fleetform.store.runs import insert_attempts, raise_generation, refresh_runs
from fleetform.store.submissions import insert_jobs

if TYPE_CHECKING:
    from fleetform.model.ports import Ids

__all__ = ["commit_transitions", "record_usage"]


def commit_transitions(
    transaction: Transaction, transitions: Sequence[tuple[RunUid, Next]], *, now_ms: int, ids: Ids
) -> None:
    """See `model.ports.Ledger.commit_transitions`."""
    # All are read before any is changed, and ends are written together: a host's news ends runs
    # by the dozen, and each statement of its own is an exchange with the database.
    assert len({uid for uid, _ in transitions}) == len(transitions), "a run has one verdict a round"
    decided = {uid: verdict for uid, verdict in transitions if not isinstance(verdict, Wait)}
    standing = _read(transaction, list(decided))
    ended: list[tuple[_Standing, Finish]] = []
    for uid, verdict in decided.items():
        run = standing.get(uid)
        if run is None:
            continue
        if isinstance(verdict, Finish):
            ended.append((run, verdict))
        else:
            _CARRY_OUT[type(verdict)](transaction, run, verdict, now_ms, ids)
    _finish(transaction, ended, now_ms)


@dataclass(frozen=True, slots=True)
class _Standing:
    """The position of a run that is not over."""

    uid: str
    name: str
    nodes: int
    attempt: int
    attempt_state: str


def _read(transaction: Transaction, uids: Sequence[str]) -> dict[str, _Standing]:
    rows = transaction.execute(
        "SELECT r.uid, r.name, r.nodes, r.attempt, a.state FROM runs r"
        " JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.uid IN (SELECT value FROM json_each(?)) AND r.final = 0",
        (to_json(uids),),
    )
    return {row[0]: _Standing(*row) for row in rows}


# -- passing the commit point -------------------------------------------------------------


def _pass_commit_point(
    transaction: Transaction, run: _Standing, _: AllPrepared, now_ms: int, __: Ids
) -> None:
    """Pass the commit point: every rank is prepared under the boot it was given, and from here the attempt may have run."""
    jobs = transaction.execute(
        "SELECT j.state, j.boot_id = i.boot_id, i.state <> 'terminated' FROM jobs j"
        " JOIN instances i ON i.uid = j.instance_uid WHERE j.run_uid = ? AND j.attempt = ?",
        (run.uid, run.attempt),
    ).fetchall()
    if run.attempt_state != "reserved" or len(jobs) != run.nodes:
        return
    if not all(job == ("prepared", 1, 1) for job in jobs):
        return
    transaction.execute(
        "UPDATE jobs SET state = 'starting', gen = gen + 1 WHERE run_uid = ? AND attempt = ?",
        (run.uid, run.attempt),
    )
    transaction.execute(
        "UPDATE attempts SET state = 'starting', starting_at_ms = ?"
        " WHERE run_uid = ? AND number = ?",
        (now_ms, run.uid, run.attempt),
    )
    raise_generation(transaction, run.uid)
    refresh_runs(transaction, (run.uid,), now_ms=now_ms)


# -- ending a gang ------------------------------------------------------------------------


def _stop_gang(
    transaction: Transaction, run: _Standing, verdict: StopGang, now_ms: int, _: Ids
) -> None:
    if run.attempt_state == "finished":
        return
    _end_jobs(transaction, [(run, verdict.message)], now_ms)
    # Before its commit point an attempt is aborted, afterwards it is stopped.
    taken_back = run.attempt_state in {"waiting", "reserved", "aborting"}
    stopping = transaction.execute(
        "UPDATE attempts SET state = ?, cause = ?, message = ? WHERE run_uid = ? AND number = ?"
        # The first reason is why it ended; later ones only find it ending.
        " AND state NOT IN ('aborting', 'stopping')",
        (
            "aborting" if taken_back else "stopping",
            verdict.cause,
            verdict.message,
            run.uid,
            run.attempt,
        ),
    )
    if not stopping.rowcount:
        return
    raise_generation(transaction, run.uid)
    refresh_runs(transaction, (run.uid,), now_ms=now_ms)
    transaction.log(
        "run.stopping",
        now_ms,
        f"run {run.name} is being stopped: {verdict.message or verdict.cause}",
        ("run", run.name),
        attempt=run.attempt,
    )


def _end_jobs(transaction: Transaction, runs: Sequence[tuple[_Standing, str]], now_ms: int) -> None:
    """Mark what a host may know to be stopped, and end what none does; each with a sentence why."""
    transaction.many(
        "UPDATE jobs SET state = 'finished', cause = 'never_started', message = ?,"
        " finished_at_ms = ?, forgotten = 1, gen = gen + 1"
        " WHERE run_uid = ? AND attempt = ? AND state = 'waiting'",
        [(message, now_ms, run.uid, run.attempt) for run, message in runs],
    )
    transaction.many(
        "UPDATE jobs SET stop_wanted = 1, gen = gen + 1"
        " WHERE run_uid = ? AND attempt = ? AND state <> 'finished' AND stop_wanted = 0",
        [(run.uid, run.attempt) for run, _ in runs],
    )


# -- ending an attempt --------------------------------------------------------------------


def _requeue(
    transaction: Transaction, run: _Standing, verdict: Requeue, now_ms: int, ids: Ids
) -> None:
    left = transaction.one(
        "SELECT 1 FROM jobs WHERE run_uid = ? AND attempt = ? AND state <> 'finished'",
        (run.uid, run.attempt),
    )
    if left is not None:
        # No second attempt without proof that the first is dead.
        return
    _finish_attempts(transaction, [(run, verdict.cause, verdict.message)], now_ms)
    following = run.attempt + 1
    transaction.execute(
        "UPDATE attempts SET counted = ? WHERE run_uid = ? AND number = ?",
        (int(verdict.counted), run.uid, run.attempt),
    )
    insert_attempts(transaction, [(run.uid, following)], now_ms=now_ms)
    insert_jobs(transaction, [(run.uid, following, rank, ids.uid()) for rank in range(run.nodes)])
    later = verdict.not_before_ms > now_ms
    transaction.execute(
        "UPDATE runs SET attempt = ?, state = ?, not_before_ms = ?, cause = ?, message = ?,"
        " uncounted = uncounted + ?, generation = generation + 1 WHERE uid = ?",
        (
            following,
            RunState.PENDING if later else RunState.SUBMITTED,
            verdict.not_before_ms,
            verdict.cause,
            verdict.message,
            int(not verdict.counted),
            run.uid,
        ),
    )
    transaction.log(
        "run.requeued",
        now_ms,
        f"run {run.name} is retried: {verdict.message or verdict.cause}",
        ("run", run.name),
        attempt=following,
    )


def _finish(
    transaction: Transaction, ended: Sequence[tuple[_Standing, Finish]], now_ms: int
) -> None:
    """
    End runs for good.

    A job that may still run, as on a host that was given up, is marked to be stopped and keeps
    its units until its end is proved.
    """
    if not ended:
        return
    assert all(RunState(verdict.state) in FINAL for _, verdict in ended), ended
    _end_jobs(transaction, [(run, verdict.message) for run, verdict in ended], now_ms)
    _finish_attempts(
        transaction, [(run, verdict.cause, verdict.message) for run, verdict in ended], now_ms
    )
    transaction.many(
        "UPDATE runs SET state = ?, final = 1, cause = ?, message = ?, finished_at_ms = ?,"
        " generation = generation + 1 WHERE uid = ?",
        [
            (RunState(verdict.state), verdict.cause, verdict.message, now_ms, run.uid)
            for run, verdict in ended
        ],
    )
    for run, verdict in ended:
        transaction.log(
            f"run.{RunState(verdict.state)}",
            now_ms,
            f"run {run.name} is {RunState(verdict.state)}"
            + (f": {verdict.message}" if verdict.message else ""),
            ("run", run.name),
            attempt=run.attempt,
        )


def _finish_attempts(
    transaction: Transaction, ended: Sequence[tuple[_Standing, str, str]], now_ms: int
) -> None:
    """End the attempts of these runs: (run, cause, sentence)."""
    transaction.many(
        "UPDATE attempts SET state = 'finished', cause = ?, message = ?, finished_at_ms = ?"
        " WHERE run_uid = ? AND number = ?",
        [(cause, message, now_ms, run.uid, run.attempt) for run, cause, message in ended],
    )
    record_usage(transaction, [(run.uid, run.attempt, cause) for run, cause, _ in ended])


_CARRY_OUT: Mapping[type[Any], Callable[[Transaction, _Standing, Any, int, Ids], None]] = {
    AllPrepared: _pass_commit_point,
    StopGang: _stop_gang,
    Requeue: _requeue,
}

# What each attempt was allotted, kept for ever.
# A row is written when the attempt ends and never changed. Only jobs that ran count, from their
# start to their end as their hosts saw them.


def record_usage(transaction: Transaction, ended: Iterable[tuple[str, int, str]]) -> None:
    """
    Add up the jobs of attempts; an attempt that never had a place leaves no row.

    `ended`: (run uid, number of the attempt, cause).
    """
    transaction.many(
        "INSERT INTO usage (run_uid, attempt, name, who, jobs, started_at_ms, finished_at_ms,"
        " cpu_ms, gpu_ms, memory_bytes, cause)"
        # Millicores times milliseconds are microseconds of CPU; integers of 64 bits hold 292 000
        # years of them.
        " SELECT r.uid, ?2, r.name, r.who, count(*), min(j.started_at_ms), max(j.finished_at_ms),"
        " CAST(sum(j.cpu_millicores * max(j.finished_at_ms - j.started_at_ms, 0)) AS BIGINT) / 1000,"
        " sum(j.gpus_count * max(j.finished_at_ms - j.started_at_ms, 0)),"
        " sum(j.memory_bytes), ?3"
        " FROM jobs j JOIN runs r ON r.uid = j.run_uid"
        " WHERE j.run_uid = ?1 AND j.attempt = ?2"
        " AND j.started_at_ms IS NOT NULL AND j.finished_at_ms IS NOT NULL"
        " GROUP BY r.uid, r.name, r.who ON CONFLICT (run_uid, attempt) DO NOTHING",
        ended,
    )
