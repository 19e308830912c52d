"""
A ledger that knows it is not the newest: marked as recovering, raised, filled from hosts.

Whoever wires decides when; while it is recovering nothing is placed and no plan is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.ledger import LedgerStatus
from fleetform.model.run import RunState
from fleetform.store.plans import finish_apply
from fleetform.store.runs import refresh_runs

if TYPE_CHECKING:
    from fleetform.agents.protocol.messages import JobKey, JobRecord
    from fleetform.store.database import Transaction

__all__ = [
    "adopt_records",
    "begin_recovery",
    "end_recovery",
    "interrupt_applies",
    "judge_runs",
    "put_records",
    "raise_epoch",
]

_NO_DOCUMENT = "{}"
"""What a run has whose submission this ledger has never seen."""

_ENDED_BY_US = frozenset({Cause.STOPPED.value, Cause.NEVER_STARTED.value})
"""Who asked for it was written in the ledger that is gone; a person may run it again."""


def begin_recovery(transaction: Transaction, note: str) -> None:
    """Refuse starts and plans from now on; `note` is the sentence that says why."""
    transaction.execute("UPDATE meta SET status = ?, note = ?", (LedgerStatus.RECOVERING, note))


def end_recovery(transaction: Transaction) -> None:
    transaction.execute(
        "UPDATE meta SET status = ?, note = '' WHERE status = ?",
        (LedgerStatus.READY, LedgerStatus.RECOVERING),
    )


def interrupt_applies(transaction: Transaction, *, now_ms: int) -> None:
    """
    End what was entered before the ledger was put together again.

    It was planned for what this ledger believed then. To go on with it could run again what a host
    has told since to have run; what is still to be done, the next plan says.
    """
    rows = transaction.execute("SELECT uid FROM applies WHERE state = 'running' ORDER BY number")
    for (uid,) in rows.fetchall():
        finish_apply(
            transaction,
            uid,
            state="interrupted",
            summary="the ledger was rebuilt since; plan again for the remaining changes",
            now_ms=now_ms,
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
    Take over the jobs that a host remembers and this ledger does not, or only as waiting.

    A run that had no row gets one without a document: over if its latest attempt ended, else
    `unknown`. A run that had one goes on from what the host knows, and `lifecycle` judges it. In
    neither case does an attempt that may have run wait for a place again. Units are not known, so
    none are held: nothing is placed while the ledger is recovering, and the host itself verifies
    what is free before it prepares anything.

    `names` has run uid to name, as far as anything tells; other runs are called `recovered-` and
    the beginning of their uid. Returns the keys of what was taken over.
    """
    adopted = put_records(transaction, instance_uid, records, names=names, now_ms=now_ms)
    judge_runs(transaction, dict.fromkeys(key.run_uid for key in adopted), now_ms=now_ms)
    return adopted


def put_records(
    transaction: Transaction,
    instance_uid: str,
    records: Sequence[JobRecord],
    *,
    names: Mapping[str, str],
    now_ms: int,
) -> tuple[JobKey, ...]:
    """Write one host's part; a gang is judged when all of its hosts have been heard."""
    adopted: list[JobKey] = []
    for record in sorted(records, key=lambda record: record.key):
        _put_run(transaction, record, names, now_ms)
        if _put_job(transaction, instance_uid, record, now_ms):
            adopted.append(record.key)
    return tuple(adopted)


def judge_runs(transaction: Transaction, run_uids: Iterable[str], *, now_ms: int) -> None:
    """Say where runs stand of whose jobs some were taken over."""
    for uid in run_uids:
        _put_latest_attempt(transaction, uid, now_ms)
        _judge(transaction, uid, now_ms)


def _put_run(
    transaction: Transaction, record: JobRecord, names: Mapping[str, str], now_ms: int
) -> None:
    """Make sure that the record's run has a row, and its attempt one that does not wait."""
    uid, attempt, _ = record.key
    name = names.get(uid, f"recovered-{uid[:12]}")
    submitted = record.started_at_ms if record.started_at_ms is not None else now_ms
    inserted = transaction.execute(
        "INSERT INTO runs (number, uid, name, type, state, listed, document, attempt, submitted_at_ms)"
        " VALUES ((SELECT coalesce(max(number), 0) + 1 FROM runs), ?, ?, 'task', 'unknown', 1,"
        " ?, ?, ?) ON CONFLICT (uid) DO NOTHING",
        (uid, name, _NO_DOCUMENT, attempt, submitted),
    )
    if inserted.rowcount:
        transaction.log("run.adopted", now_ms, f"run {name} was found on a host", ("run", name))
    transaction.execute(
        "INSERT INTO attempts (run_uid, number, state, submitted_at_ms, started_at_ms)"
        " VALUES (?, ?, 'running', ?, ?)"
        " ON CONFLICT (run_uid, number) DO UPDATE SET state = 'running'"
        " WHERE attempts.state IN ('waiting', 'reserved')",
        (uid, attempt, submitted, record.started_at_ms),
    )


_PUT_JOB = (
    "INSERT INTO jobs (run_uid, attempt, rank, uid, state, gen, instance_uid, boot_id, cause,"
    " exit_code, signal, message, started_at_ms, finished_at_ms, forgotten, peak_memory_bytes,"
    " cpu_time_ms, log_bytes)"
    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7,"
    " coalesce((SELECT boot_id FROM instances WHERE uid = ?7), ''), ?8, ?9, ?10, ?11, ?12, ?13,"
    " ?14, ?15, ?16, ?17)"
    # A row that waits is of a ledger older than the host: what happened since is the host's to say.
    " ON CONFLICT (run_uid, attempt, rank) DO UPDATE"
    " SET uid = excluded.uid, state = excluded.state,"
    " gen = max(jobs.gen, excluded.gen), instance_uid = excluded.instance_uid,"
    " boot_id = excluded.boot_id, cause = excluded.cause, exit_code = excluded.exit_code,"
    " signal = excluded.signal, message = excluded.message,"
    " started_at_ms = excluded.started_at_ms, finished_at_ms = excluded.finished_at_ms,"
    " forgotten = excluded.forgotten, peak_memory_bytes = excluded.peak_memory_bytes,"
    " cpu_time_ms = excluded.cpu_time_ms, log_bytes = excluded.log_bytes"
    " WHERE jobs.state = 'waiting'"
)


def _put_job(transaction: Transaction, instance_uid: str, record: JobRecord, now_ms: int) -> bool:
    finished = record.finished_at_ms if record.finished_at_ms is not None else now_ms
    put = transaction.execute(
        _PUT_JOB,
        (
            *record.key,
            record.job_uid,
            record.state.value,
            record.gen,
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
    return bool(put.rowcount)


def _put_latest_attempt(transaction: Transaction, uid: str, now_ms: int) -> None:
    """Let a run that is not over go on from its latest attempt; none before it is placed again."""
    row = transaction.one("SELECT max(number) FROM attempts WHERE run_uid = ?", (uid,))
    assert row is not None
    (latest,) = row
    transaction.execute(
        "UPDATE runs SET attempt = ?, generation = generation + 1 WHERE uid = ? AND final = 0",
        (latest, uid),
    )
    transaction.execute(
        "UPDATE jobs SET state = 'finished', cause = 'never_started', forgotten = 1,"
        " finished_at_ms = ? WHERE run_uid = ? AND attempt < ? AND state = 'waiting'",
        (now_ms, uid, latest),
    )
    transaction.execute(
        "UPDATE attempts SET state = 'finished', finished_at_ms = ?"
        " WHERE run_uid = ? AND number < ? AND state <> 'finished'",
        (now_ms, uid, latest),
    )


def _judge(transaction: Transaction, uid: str, now_ms: int) -> None:
    """Say of a run without a document what its latest attempt proves; of others, where they are."""
    run = transaction.one("SELECT final, document, attempt FROM runs WHERE uid = ?", (uid,))
    assert run is not None
    final, document, attempt = run
    if final:
        return
    if document != _NO_DOCUMENT:
        refresh_runs(transaction, (uid,), now_ms=now_ms)
        return
    jobs = transaction.execute(
        "SELECT state, cause, exit_code, finished_at_ms FROM jobs"
        " WHERE run_uid = ? AND attempt = ?",
        (uid, attempt),
    ).fetchall()
    transaction.execute(
        "UPDATE runs SET nodes = ?1, started_at_ms = (SELECT min(started_at_ms) FROM jobs"
        " WHERE run_uid = ?2) WHERE uid = ?2",
        (len(jobs), uid),
    )
    if any(state != "finished" for state, *_ in jobs):
        return
    succeeded = all((cause, code) == (Cause.EXITED.value, 0) for _, cause, code, _ in jobs)
    ended = any(cause in _ENDED_BY_US for _, cause, _, _ in jobs)
    state = RunState.DONE if succeeded else RunState.STOPPED if ended else RunState.FAILED
    transaction.execute(
        "UPDATE runs SET state = ?, final = 1, cause = ?, finished_at_ms = ?,"
        " message = 'found on its host when the ledger was rebuilt' WHERE uid = ?",
        (
            state,
            jobs[0][1],
            max(finished for *_, finished in jobs),
            uid,
        ),
    )
    transaction.execute(
        "UPDATE attempts SET state = 'finished', finished_at_ms = ? WHERE run_uid = ? AND number = ?",
        (now_ms, uid, attempt),
    )
