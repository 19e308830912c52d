"""
Jobs that are proved dead without a word of their host: another boot, another install, released.

The proof is the caller's; here it is only written down. Silence is no proof and never comes here.
"""

from __future__ import annotations

from collections.abc import Container

from fleetform.agents.protocol.messages import JobKey
from fleetform.agents.protocol.states import Cause
from fleetform.store.database import Transaction
from fleetform.store.progress import refresh_runs

__all__ = ["free_units", "lose_jobs"]


def lose_jobs(
    transaction: Transaction,
    instance_uid: str,
    why: str,
    *,
    now_ms: int,
    still_alive_boot: str = "",
    begun: bool = False,
    spared: Container[JobKey] = (),
) -> tuple[JobKey, ...]:
    """
    End what an instance can no longer be running, and give back its units.

    `why` is a sentence for people, kept with each job. Jobs reserved under `still_alive_boot` are
    not touched (empty: all are lost), nor with `begun` those that the host never said to be at work,
    nor those in `spared`, of which the host itself tells how they ended.

    Returns:
        Keys of the jobs that ended: as `lost` where a process of theirs may have existed, else
        as `never_started`.
    """
    rows = transaction.execute(
        "SELECT run_uid, attempt, rank, uid, state, started_at_ms FROM jobs INDEXED BY jobs_placed"
        " WHERE instance_uid = ? AND instance_uid <> '' AND state <> 'finished'"
        " AND (? = '' OR boot_id <> ?) AND (? = 0 OR state IN ('running', 'cleaning', 'unknown'))"
        " ORDER BY run_uid, attempt, rank",
        (instance_uid, still_alive_boot, still_alive_boot, int(begun)),
    ).fetchall()
    dead = [row for row in rows if JobKey(*row[:3]) not in spared]
    if not dead:
        return ()
    transaction.many(
        # Nobody is left who keeps a record that would have to be forgotten.
        "UPDATE jobs SET state = 'finished', cause = ?, message = ?, finished_at_ms = ?,"
        " forgotten = 1, gen = gen + 1 WHERE run_uid = ? AND attempt = ? AND rank = ?",
        ((_cause(state), why, now_ms, *key) for *key, _, state, _ in dead),
    )
    free_units(transaction, [uid for _, _, _, uid, _, _ in dead])
    keys = tuple(JobKey(*row[:3]) for row in dead)
    for key, row in zip(keys, dead, strict=True):
        _log(transaction, key, row[4], why, now_ms)
    refresh_runs(transaction, dict.fromkeys(key.run_uid for key in keys), now_ms=now_ms)
    return keys


def free_units(transaction: Transaction, job_uids: list[str]) -> None:
    """Give back what jobs held; their single units go with the allocation."""
    transaction.many("DELETE FROM allocations WHERE job_uid = ?", ((uid,) for uid in job_uids))


def _cause(state: str) -> Cause:
    before_commit = state in {"reserved", "preparing", "prepared"}
    return Cause.NEVER_STARTED if before_commit else Cause.LOST


def _log(transaction: Transaction, key: JobKey, state: str, why: str, now_ms: int) -> None:
    row = transaction.one("SELECT name FROM runs WHERE uid = ?", (key.run_uid,))
    assert row is not None
    (name,) = row
    what = "never started" if _cause(state) is Cause.NEVER_STARTED else "was lost"
    transaction.log(
        "job.lost",
        now_ms,
        f"job {key.rank} of run {name} {what}: {why}",
        ("run", name),
        attempt=key.attempt,
        rank=key.rank,
    )
