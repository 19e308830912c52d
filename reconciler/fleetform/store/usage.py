"""
What each attempt was allotted, kept for ever.

A row is written when the attempt ends and never changed. Only jobs that ran count, from their
start to their end as their hosts saw them.
"""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.store.database import Transaction

__all__ = ["record_usage"]


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
