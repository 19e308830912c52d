"""
Writes what hosts say about jobs.

Records come late, twice, and out of order. A state only moves forward, so that the result does not depend on any of
that. A job that ends gives back its units in the same transaction; the host forgets its record later, when its output has
arrived.

The clock of a host may be wrong by hours, and be set while a job runs. The host measures how long a job took by a clock
that nobody sets; when it began and ended is moved between its submission and now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fleetform.agents.protocol.messages import Cursor, JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState, moves_forward
from fleetform.model.ports import HostNews
from fleetform.store.database import Transaction, to_json
from fleetform.store.hosts import free_units, last_sign_of_life_ms
from fleetform.store.runs import JOB_STATES, refresh_runs

__all__ = ["commit_news", "commit_records"]

_MOVE = (
    "UPDATE jobs SET state = ?, gen = max(gen, ?), cause = ?, exit_code = ?, signal = ?,"
    " message = ?, started_at_ms = coalesce(?, started_at_ms), finished_at_ms = ?,"
    " peak_memory_bytes = coalesce(?, peak_memory_bytes), cpu_time_ms = coalesce(?, cpu_time_ms),"
    " log_bytes = max(log_bytes, ?) WHERE run_uid = ? AND attempt = ? AND rank = ?"
)

_READ = (
    "SELECT instance_uid, run_uid, attempt, rank, uid, state, (SELECT submitted_at_ms FROM attempts"
    " WHERE attempts.run_uid = jobs.run_uid AND number = jobs.attempt), started_at_ms FROM jobs"
)

_READ_ONE = (
    _READ + " WHERE run_uid = ? AND attempt = ? AND rank = ? AND instance_uid = ?"
    " AND state <> 'finished'"
)

_READ_PLACED = (
    _READ  # noqa: S608 -- both parts are constants
    + " INDEXED BY jobs_placed WHERE instance_uid IN (SELECT value FROM json_each(?))"
    " AND instance_uid <> '' AND state <> 'finished'"
)


def commit_records(
    transaction: Transaction,
    instance_uid: str,
    records: Sequence[JobRecord],
    cursor: Cursor | None,
    *,
    snapshot: bool,
    now_ms: int,
) -> tuple[JobKey, ...]:
    """See `model.ports.Ledger.commit_records`."""
    news = HostNews(instance_uid, records, cursor)
    moved = commit_news(transaction, [news], snapshot=snapshot, now_ms=now_ms)
    if snapshot:
        _fast_forward(transaction, records)
    return moved


def commit_news(
    transaction: Transaction, news: Sequence[HostNews], *, snapshot: bool = False, now_ms: int
) -> tuple[JobKey, ...]:
    """
    See `model.ports.Ledger.commit_news`.

    Each statement is for all hosts together: between two statements this thread may have to wait for
    the event loop, which is at work when a thousand hosts speak.
    """
    moved = _moved(transaction, news)
    transaction.many(_MOVE, (_values(*one, now_ms) for one in moved.values()))
    ended = [record for record, _ in moved.values() if record.state is JobState.FINISHED]
    _end_with_their_boot(transaction, [one for one in ended if one.cause is Cause.LOST])
    free_units(transaction, [record.job_uid for record in ended])
    refresh_runs(transaction, dict.fromkeys(key.run_uid for key in moved), now_ms=now_ms)
    _log(transaction, ended, now_ms)
    _keep_cursors(transaction, news, snapshot=snapshot, now_ms=now_ms)
    return tuple(moved)


class _Known(NamedTuple):
    """What the ledger knows of a job that is not over."""

    state: JobState
    submitted_at_ms: int
    started_at_ms: int | None


def _moved(
    transaction: Transaction, news: Sequence[HostNews]
) -> dict[JobKey, tuple[JobRecord, _Known]]:
    """
    Pick the records that move a job of the instance that says them, the furthest of each.

    A record without a row, or with another uid, is foreign: a drift check shows it, and it is never adopted here.
    """
    said = [(one.instance_uid, record) for one in news for record in one.records]
    known = _open_jobs(transaction, said)
    moved: dict[JobKey, tuple[JobRecord, _Known]] = {}
    for instance_uid, record in said:
        before = known.get((instance_uid, record.key, record.job_uid))
        if before is None:
            continue
        furthest = moved[record.key][0].state if record.key in moved else before.state
        if moves_forward(furthest, record.state):
            # Kept in the order in which jobs were first heard of.
            moved[record.key] = record, before
    return moved


def _open_jobs(
    transaction: Transaction, said: Sequence[tuple[str, JobRecord]]
) -> dict[tuple[str, JobKey, str], _Known]:
    """
    Read these instances' jobs that are not over, by instance, key and uid.

    One record is looked up by its key; more are found among all that their instances have, which is
    what their places hold, in one statement.
    """
    if len(said) == 1:
        ((instance_uid, record),) = said
        rows = transaction.execute(
            _READ_ONE,
            (*record.key, instance_uid),
        )
    else:
        instance_uids = list(dict.fromkeys(instance_uid for instance_uid, _ in said))
        rows = transaction.execute(
            _READ_PLACED,
            (to_json(instance_uids),),
        )
    return {
        (instance_uid, JobKey(*key), uid): _Known(JOB_STATES[state], submitted, started)
        for instance_uid, *key, uid, state, submitted, started in rows
    }


def _end_with_their_boot(transaction: Transaction, lost: Sequence[JobRecord]) -> None:
    """Let jobs that a reboot has ended end when their host was heard last before it."""
    for record in lost:
        row = transaction.one(
            "SELECT j.started_at_ms, j.finished_at_ms, i.boot_heard_at_ms FROM jobs j"
            " JOIN instances i ON i.uid = j.instance_uid AND i.boot_id <> j.boot_id"
            " WHERE j.run_uid = ? AND j.attempt = ? AND j.rank = ?",
            record.key,
        )
        if row is not None:
            transaction.execute(
                "UPDATE jobs SET finished_at_ms = ? WHERE run_uid = ? AND attempt = ? AND rank = ?",
                (last_sign_of_life_ms(row[0], row[2], row[1]), *record.key),
            )


def _fast_forward(transaction: Transaction, records: Sequence[JobRecord]) -> None:
    """Adopt the counters of a host that is ahead: a command with a lower one would be stale."""
    transaction.many(
        "UPDATE jobs SET gen = ? WHERE run_uid = ? AND attempt = ? AND rank = ? AND uid = ?"
        " AND gen < ?",
        ((one.gen, *one.key, one.job_uid, one.gen) for one in records),
    )


def _values(record: JobRecord, known: _Known, now_ms: int) -> tuple[object, ...]:
    ended = record.state is JobState.FINISHED
    started = record.started_at_ms
    if started is None and record.state in {JobState.RUNNING, JobState.CLEANING, JobState.UNKNOWN}:
        started = now_ms
    finished = (
        (record.finished_at_ms if record.finished_at_ms is not None else now_ms) if ended else None
    )
    if record.cause is Cause.LOST and known.started_at_ms is not None:
        # An agent that was killed too takes a lost job's start for the moment it looked again.
        started = known.started_at_ms
        finished = max(started, min(finished or now_ms, now_ms))
    else:
        started, finished = _in_order(started, finished, known.submitted_at_ms, now_ms)
    return (
        record.state.value,
        record.gen,
        record.cause.value if ended and record.cause is not None else "",
        record.exit_code,
        record.signal,
        record.message,
        started,
        finished,
        record.peak_memory_bytes,
        record.cpu_time_ms,
        record.log_bytes,
        *record.key,
    )


def _in_order(
    started_at_ms: int | None, finished_at_ms: int | None, submitted_at_ms: int, now_ms: int
) -> tuple[int | None, int | None]:
    """Move times of a host, both by as much, so that they are after a submission and before now."""
    known = [at for at in (started_at_ms, finished_at_ms) if at is not None]
    if not known:
        return None, None
    shift_ms = max(min(0, now_ms - known[-1]), submitted_at_ms - known[0])
    return (
        None if started_at_ms is None else started_at_ms + shift_ms,
        None if finished_at_ms is None else finished_at_ms + shift_ms,
    )


def _keep_cursors(
    transaction: Transaction, news: Sequence[HostNews], *, snapshot: bool, now_ms: int
) -> None:
    # A snapshot replaces the cursor; events of one log only move it forward.
    transaction.many(
        "UPDATE instances SET log_id = ?1, log_number = ?2, seen_at_ms = ?5 WHERE uid = ?3"
        " AND (log_id <> ?1 OR log_number < ?2 OR ?4 = 1 AND log_number <> ?2)",
        (
            (one.cursor.log_id, one.cursor.number, one.instance_uid, int(snapshot), now_ms)
            for one in news
            if one.cursor is not None
        ),
    )


# -- events -------------------------------------------------------------------------------


def _log(transaction: Transaction, ended: Sequence[JobRecord], now_ms: int) -> None:
    if not ended:
        return
    uids = list(dict.fromkeys(record.key.run_uid for record in ended))
    runs = {
        uid: (name, nodes)
        for uid, name, nodes in transaction.execute(
            "SELECT uid, name, nodes FROM runs WHERE uid IN (SELECT value FROM json_each(?))",
            (to_json(uids),),
        )
    }
    for record in ended:
        name, nodes = runs[record.key.run_uid]
        who = f"run {name}" if nodes == 1 else f"job {record.key.rank} of run {name}"
        transaction.log(
            "job.finished",
            now_ms,
            f"{who} {_ending(record)}",
            ("run", name),
            attempt=record.key.attempt,
            rank=record.key.rank,
            data=to_json({"cause": record.cause, "exit_code": record.exit_code}),
        )


_ENDINGS = {
    Cause.OOM: "was killed because it used more memory than its limit",
    Cause.MAX_DURATION: "reached its time limit",
    Cause.STOPPED: "was stopped",
    Cause.LOST: "was lost",
    Cause.INTERRUPTED: "was interrupted",
    Cause.NEVER_STARTED: "never started",
    Cause.PREPARE_FAILED: "could not be prepared",
}


def _ending(record: JobRecord) -> str:
    if record.cause is Cause.EXITED:
        return f"exited with code {record.exit_code}"
    if record.cause is Cause.SIGNAL:
        return f"was ended by signal {record.signal}"
    ending = _ENDINGS.get(record.cause, "ended") if record.cause is not None else "ended"
    return f"{ending}: {record.message}" if record.message else ending
