"""Runs' rows to values, and how an attempt and its run look from outside by the states of their jobs."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from fleetform.agents.protocol.keys import JobKey
from fleetform.agents.protocol.states import MAY_RUN, ORDER, Cause, JobState
from fleetform.model.instance import Allocation
from fleetform.model.run import (
    Attempt,
    AttemptState,
    Job,
    Run,
    RunState,
    RunUid,
    SilenceLimit,
    Template,
    from_document,
)
from fleetform.store.database import Transaction, to_json
from fleetform.store.run_state import RUN_STATES

__all__ = [
    "ALLOCATION",
    "ATTEMPT",
    "JOB",
    "JOB_STATES",
    "RUN",
    "allocation_of",
    "attempt_of",
    "attempt_state",
    "gpus_text",
    "insert_attempts",
    "job_of",
    "list_runs",
    "list_runs_of",
    "prefixed",
    "raise_generation",
    "refresh_runs",
    "run_of",
    "run_state",
    "silence_of",
    "silence_text",
]

# Rows to values: which columns make a run, an attempt, a job, an allocation.
# The order of columns here is the order in which the functions below unpack them.

# Looking a value up in a dictionary takes a fifth of the enumeration's own call.
JOB_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
_CAUSES: Mapping[str, Cause | None] = {"": None, **{cause.value: cause for cause in Cause}}
_ATTEMPT_STATES = {state.value: state for state in AttemptState}

RUN = (
    "uid", "name", "state", "number", "attempt", "generation", "cause", "message",
    "stop_requested", "submitted_at_ms", "started_at_ms", "finished_at_ms", "not_before_ms",
    "uncounted", "after_uid", "execution_digest", "owner", "parent", "document",
)  # fmt: skip
ATTEMPT = (
    "run_uid", "number", "state", "submitted_at_ms", "started_at_ms", "finished_at_ms", "cause",
    "message", "reserved_at_ms", "starting_at_ms", "master_port",
)  # fmt: skip
JOB = (
    "uid", "run_uid", "attempt", "rank", "state", "gen", "instance_uid", "boot_id",
    "stop_wanted", "cpu_millicores", "memory_bytes", "memory_limited", "disk_bytes", "gpus",
    "blocks", "cause", "exit_code", "signal", "message", "started_at_ms", "finished_at_ms",
    "forgotten", "peak_memory_bytes", "cpu_time_ms", "log_bytes", "env", "account",
    "silence",
)  # fmt: skip
ALLOCATION = (
    "instance_uid", "job_uid", "run_uid", "cpu_millicores", "memory_bytes", "disk_bytes",
    "gpus", "blocks",
)  # fmt: skip


@functools.cache
def prefixed(table: str, columns: tuple[str, ...]) -> str:
    """Return `t.a, t.b`: the columns as a statement names them."""
    return ", ".join(f"{table}.{column}" for column in columns)


def run_of(row: Sequence[Any]) -> Run:
    uid, name, state, number, *rest, parent, document = row
    return Run(
        RunUid(uid), name, _template(name, document, parent), RUN_STATES[state], number, *rest
    )


# The manager reads a run again with each step that it takes, and its document hardly ever
# changes. Two thousand bytes each: at most 16 MiB for all that are remembered.
@lru_cache(maxsize=8192)
def _template(name: str, document: str, parent: str) -> Template:
    return from_document(name, json.loads(document), parent=parent)


def attempt_of(row: Sequence[Any], jobs: Sequence[Job]) -> Attempt:
    run_uid, number, state, *rest = row
    return Attempt(RunUid(run_uid), number, _ATTEMPT_STATES[state], tuple(jobs), *rest)


def job_of(row: Sequence[Any]) -> Job:
    (uid, run_uid, attempt, rank, state, gen, instance_uid, boot_id, stop_wanted, cpu, memory,
     memory_limited, disk, gpus, blocks, cause, exit_code, signal, message, started, finished,
     forgotten, peak, cpu_time, log_bytes, env, account, silence) = row  # fmt: skip
    return Job(
        uid,
        JobKey(run_uid, attempt, rank),
        JOB_STATES[state],
        gen,
        instance_uid,
        boot_id,
        bool(stop_wanted),
        cpu,
        memory,
        bool(memory_limited),
        disk,
        tuple(gpus.split(" ")) if gpus else (),
        blocks,
        _CAUSES[cause],
        exit_code,
        signal,
        message,
        started,
        finished,
        bool(forgotten),
        peak,
        cpu_time,
        log_bytes,
        json.loads(env) if env else {},
        account,
        silence_of(silence),
    )


def silence_text(limit: SilenceLimit) -> str:
    """Write it as JSON; `silence_of` reads it."""
    return json.dumps(asdict(limit), separators=(",", ":"))


@lru_cache(maxsize=1024)
def silence_of(text: str) -> SilenceLimit | None:
    """Read the limit of a job's row; empty: it has none."""
    return SilenceLimit(**json.loads(text)) if text else None


def gpus_text(gpus: Sequence[str]) -> str:
    """Write the UUIDs of GPUs, which have no spaces, as one text."""
    assert not any(" " in gpu for gpu in gpus)
    return " ".join(gpus)


def allocation_of(row: Sequence[Any]) -> Allocation:
    instance_uid, job_uid, run_uid, cpu, memory, disk, gpus, blocks = row
    held = tuple(gpus.split(" ")) if gpus else ()
    return Allocation(instance_uid, job_uid, run_uid, cpu, memory, disk, held, blocks)


# How an attempt and its run look from outside, by the states of their jobs.
# Only this module says it, so that placement, records, verdicts and silence agree.

_BEGUN = ORDER[JobState.RUNNING]


def attempt_state(known: AttemptState, jobs: Sequence[JobState]) -> AttemptState:
    """
    Return where an attempt is, given where it was.

    It runs once every rank runs or has run. What is being ended stays so until `lifecycle` says
    that it is over.
    """
    if known in {AttemptState.WAITING, AttemptState.RESERVED} and not MAY_RUN.isdisjoint(jobs):
        # A host is ahead of this ledger, which may have been restored.
        known = AttemptState.STARTING
    if known is AttemptState.STARTING and all(ORDER[job] >= _BEGUN for job in jobs):
        return AttemptState.RUNNING
    return known


def run_state(attempt: AttemptState, jobs: Sequence[JobState], *, silent: bool) -> RunState | None:
    """Return what people see of a run that has a place, or None where it keeps what it had."""
    if attempt in {AttemptState.WAITING, AttemptState.FINISHED}:
        return None
    if silent or JobState.UNKNOWN in jobs:
        return RunState.UNKNOWN
    if attempt in {AttemptState.ABORTING, AttemptState.STOPPING}:
        return RunState.FINISHING
    if all(ORDER[job] > _BEGUN for job in jobs):
        return RunState.FINISHING
    if any(ORDER[job] >= _BEGUN for job in jobs):
        return RunState.RUNNING
    return RunState.PREPARING


def refresh_runs(transaction: Transaction, run_uids: Iterable[str], *, now_ms: int) -> None:
    """
    Bring attempts and runs up to what their jobs say.

    A run is unknown while a job of it that is not finished is on a host that is silent, or on one
    that cannot prove its end. Cause and message of the attempt before stay with that attempt: a run
    that has a place again is not what it was.
    """
    runs, attempts = [], []
    uids = list(run_uids)
    if not uids:
        return
    known, all_jobs = _read(transaction, uids)
    for uid in uids:
        if uid not in known:
            continue
        name, before, number, run_started, attempt_before, attempt_started = known[uid]
        jobs = all_jobs.get(uid, [])
        states = [JOB_STATES[state] for state, _, _, _ in jobs]
        silent = any(
            instance == "unreachable" and state != "finished" for state, _, instance, _ in jobs
        )
        doubt = next((why for state, _, _, why in jobs if state == JobState.UNKNOWN), None)
        attempt = attempt_state(_ATTEMPT_STATES[attempt_before], states)
        state = run_state(attempt, states, silent=silent)
        begun = [at for _, at, _, _ in jobs if at is not None]
        started = attempt_started if attempt_started is not None else min(begun, default=None)
        if attempt != attempt_before or started != attempt_started:
            attempts.append((attempt, started, uid, number))
        shown = state if state is not None else before
        first = run_started if run_started is not None else started
        if shown != before or first != run_started:
            has_place = state is not None
            message, cause = (doubt or "", "") if has_place else (None, None)
            runs.append((shown, first, message, cause, uid))
        if first is not None and run_started is None:
            transaction.log(
                "run.started", now_ms, f"run {name} started", ("run", name), attempt=number
            )
    transaction.many(
        "UPDATE attempts SET state = ?, started_at_ms = ? WHERE run_uid = ? AND number = ?",
        attempts,
    )
    transaction.many(
        "UPDATE runs SET state = ?, started_at_ms = ?, message = coalesce(?, message),"
        " cause = coalesce(?, cause) WHERE uid = ?",
        runs,
    )


def _read(
    transaction: Transaction, uids: Sequence[str]
) -> tuple[dict[str, tuple[Any, ...]], dict[str, list[tuple[Any, ...]]]]:
    """Read runs that are not over, and the jobs of their latest attempts, by uid; in two statements."""
    listed = (to_json(uids),)
    runs = transaction.execute(
        "SELECT r.uid, r.name, r.state, r.attempt, r.started_at_ms, a.state, a.started_at_ms"
        " FROM runs r JOIN attempts a ON a.run_uid = r.uid AND a.number = r.attempt"
        " WHERE r.uid IN (SELECT value FROM json_each(?)) AND r.final = 0",
        listed,
    ).fetchall()
    jobs: dict[str, list[tuple[Any, ...]]] = {}
    for uid, *job in transaction.execute(
        "SELECT r.uid, j.state, j.started_at_ms, i.state, j.message FROM runs r"
        " JOIN jobs j ON j.run_uid = r.uid AND j.attempt = r.attempt"
        " LEFT JOIN instances i ON i.uid = j.instance_uid"
        " WHERE r.uid IN (SELECT value FROM json_each(?)) AND r.final = 0",
        listed,
    ):
        jobs.setdefault(uid, []).append(tuple(job))
    return {uid: tuple(run) for uid, *run in runs}, jobs


# The statements on rows of runs and attempts that several modules share.


def list_runs(transaction: Transaction, uids: Iterable[str], *, listed: bool) -> None:
    """Say whether runs are the ones that their names stand for; others are history."""
    transaction.many(
        "UPDATE runs SET listed = ? WHERE uid = ?", [(int(listed), uid) for uid in uids]
    )


def list_runs_of(transaction: Transaction, names: Iterable[str], *, listed: bool) -> None:
    """Say the same of the runs of these resources."""
    transaction.many(
        "UPDATE runs SET listed = ?"
        " WHERE uid = (SELECT uid FROM resources WHERE kind = 'run' AND name = ?)",
        [(int(listed), name) for name in names],
    )


def raise_generation(transaction: Transaction, uid: str) -> None:
    """Say that a run has changed, so that a plan made before is stale."""
    transaction.execute("UPDATE runs SET generation = generation + 1 WHERE uid = ?", (uid,))


def insert_attempts(
    transaction: Transaction, attempts: Iterable[tuple[str, int]], *, now_ms: int
) -> None:
    """Write waiting attempts: (run uid, number)."""
    transaction.many(
        "INSERT INTO attempts (run_uid, number, state, submitted_at_ms)"
        " VALUES (?, ?, 'waiting', ?)",
        [(uid, number, now_ms) for uid, number in attempts],
    )
