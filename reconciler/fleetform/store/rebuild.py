"""
A ledger that knows it is not the newest: marked as recovering, raised, filled from the world.

Whoever wires decides when; while it is recovering nothing is placed and no plan is accepted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.live import LedgerStatus
from fleetform.model.run import AttemptState, RunState
from fleetform.store.database import Transaction

__all__ = ["adopt_records", "begin_recovery", "end_recovery", "raise_epoch"]


def begin_recovery(transaction: Transaction, note: str) -> None:
    """Refuse starts and plans from now on; `note` is the sentence that says why."""
    transaction.execute("UPDATE meta SET status = ?, note = ?", (LedgerStatus.RECOVERING, note))


def end_recovery(transaction: Transaction) -> None:
    transaction.execute(
        "UPDATE meta SET status = ?, note = '' WHERE status = ?",
        (LedgerStatus.READY, LedgerStatus.RECOVERING),
    )


def raise_epoch(transaction: Transaction, above: int) -> int:
    """Take an epoch that no host has heard of: above this ledger's own and `above`."""
    row = transaction.one("UPDATE meta SET epoch = max(epoch, ?) + 1 RETURNING epoch", (above,))
    assert row is not None
    return int(row[0])


def adopt_records(
    transaction: Transaction,
    instance_uid: str,
    records: Sequence[JobRecord],
    *,
    names: Mapping[str, str],
    now_ms: int,
) -> tuple[JobKey, ...]:
    """
    Insert the jobs that a host remembers and this ledger does not.

    A run whose last attempt ended by itself is over; any other is `unknown`, and is not placed
    again by anybody. Units are not known, so none are held: nothing is placed while the ledger is
    recovering, and the host verifies what is free before it prepares anything.

    `names` has run uid to name, as far as anything tells; other runs are called `recovered-` and
    the beginning of their uid.

    Returns:
        Keys of what was inserted.
    """
    adopted = tuple(
        record
        for record in sorted(records, key=lambda record: record.key)
        if _insert_run(transaction, record, names, now_ms)
        and _insert_job(transaction, instance_uid, record, now_ms)
    )
    for uid in dict.fromkeys(record.key.run_uid for record in adopted):
        _judge(transaction, uid, now_ms)
    return tuple(record.key for record in adopted)


def _insert_run(
    transaction: Transaction, record: JobRecord, names: Mapping[str, str], now_ms: int
) -> bool:
    """Make sure that the record's run and attempt have rows; a run that we know keeps its own."""
    uid, attempt, _ = record.key
    name = names.get(uid, f"recovered-{uid[:12]}")
    submitted = record.started_at_ms if record.started_at_ms is not None else now_ms
    inserted = transaction.execute(
        "INSERT INTO runs (number, uid, name, type, state, listed, document, submitted_at_ms)"
        " VALUES ((SELECT coalesce(max(number), 0) + 1 FROM runs), ?, ?, 'task', 'unknown', 1,"
        " '{}', ?) ON CONFLICT (uid) DO NOTHING",
        (uid, name, submitted),
    )
    if inserted.rowcount:
        transaction.log("run.adopted", now_ms, f"run {name} was found on a host", ("run", name))
    transaction.execute(
        "INSERT INTO attempts (run_uid, number, state, submitted_at_ms, started_at_ms)"
        " VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (uid, attempt, AttemptState.RUNNING, submitted, record.started_at_ms),
    )
    return True


def _insert_job(
    transaction: Transaction, instance_uid: str, record: JobRecord, now_ms: int
) -> bool:
    finished = record.finished_at_ms if record.finished_at_ms is not None else now_ms
    inserted = transaction.execute(
        "INSERT INTO jobs (run_uid, attempt, rank, uid, state, gen, instance_uid, boot_id, cause,"
        " exit_code, signal, message, started_at_ms, finished_at_ms, forgotten,"
        " peak_memory_bytes, cpu_time_ms, log_bytes)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, coalesce((SELECT boot_id FROM instances WHERE uid = ?), ''),"
        " ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            *record.key,
            record.job_uid,
            record.state.value,
            record.gen,
            instance_uid,
            instance_uid,
            record.cause.value if record.cause is not None else "",
            record.exit_code,
            record.signal,
            record.message,
            record.started_at_ms,
            finished if record.state is JobState.FINISHED else None,
            # Of a tombstone the host has forgotten everything else already.
            int(record.tombstone),
            record.peak_memory_bytes,
            record.cpu_time_ms,
            record.log_bytes,
        ),
    )
    return bool(inserted.rowcount)


def _judge(transaction: Transaction, uid: str, now_ms: int) -> None:
    """Say of an adopted run what its latest attempt proves."""
    run = transaction.one("SELECT final, state FROM runs WHERE uid = ?", (uid,))
    latest = transaction.one("SELECT max(number) FROM attempts WHERE run_uid = ?", (uid,))
    assert run is not None
    assert latest is not None
    if run[0] or run[1] != RunState.UNKNOWN:
        return
    jobs = transaction.execute(
        "SELECT state, cause, exit_code, started_at_ms, finished_at_ms FROM jobs"
        " WHERE run_uid = ? AND attempt = ?",
        (uid, latest[0]),
    ).fetchall()
    transaction.execute(
        "UPDATE runs SET attempt = ?, nodes = ?, started_at_ms ="
        " (SELECT min(started_at_ms) FROM jobs WHERE run_uid = ?) WHERE uid = ?",
        (latest[0], len(jobs), uid, uid),
    )
    if not all(state == "finished" for state, *_ in jobs):
        return
    by_itself = all(cause == Cause.EXITED for _, cause, *_ in jobs)
    succeeded = by_itself and all(exit_code == 0 for _, _, exit_code, *_ in jobs)
    state = RunState.DONE if succeeded else RunState.FAILED
    transaction.execute(
        "UPDATE runs SET state = ?, final = 1, cause = ?, finished_at_ms = ?,"
        " message = 'found on its host when the ledger was rebuilt' WHERE uid = ?",
        (state, jobs[0][1], max(finished or now_ms for *_, finished in jobs), uid),
    )
    transaction.execute(
        "UPDATE attempts SET state = 'finished', finished_at_ms = ? WHERE run_uid = ? AND number = ?",
        (now_ms, uid, latest[0]),
    )
