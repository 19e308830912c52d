"""
Rows to values: which columns make a run, an attempt, a job, an allocation.

The order of columns here is the order in which the functions below unpack them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from fleetform.agents.protocol.keys import JobKey
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.instance import Allocation
from fleetform.model.run import Attempt, AttemptState, Job, Run, RunUid, Template
from fleetform.model.template import from_document
from fleetform.store.live import RUN_STATES

__all__ = ["ALLOCATION", "ATTEMPT", "JOB", "JOB_STATES", "RUN", "allocation_of", "attempt_of",
           "gpus_text", "job_of", "prefixed", "run_of"]  # fmt: skip

# Looking a value up in a dictionary takes a fifth of the enumeration's own call.
JOB_STATES: Mapping[str, JobState] = {state.value: state for state in JobState}
_CAUSES: Mapping[str, Cause | None] = {"": None, **{cause.value: cause for cause in Cause}}
_ATTEMPT_STATES = {state.value: state for state in AttemptState}

RUN = (
    "uid", "name", "state", "number", "attempt", "generation", "cause", "message",
    "stop_requested", "submitted_at_ms", "started_at_ms", "finished_at_ms", "not_before_ms",
    "uncounted", "after_uid", "execution_digest", "parent", "document",
)  # fmt: skip
ATTEMPT = (
    "run_uid", "number", "state", "submitted_at_ms", "started_at_ms", "finished_at_ms", "cause",
    "message", "reserved_at_ms", "starting_at_ms",
)  # fmt: skip
JOB = (
    "uid", "run_uid", "attempt", "rank", "state", "gen", "instance_uid", "boot_id",
    "stop_wanted", "cpu_millicores", "memory_bytes", "memory_limited", "disk_bytes", "gpus",
    "blocks", "cause", "exit_code", "signal", "message", "started_at_ms", "finished_at_ms",
    "forgotten", "peak_memory_bytes", "cpu_time_ms", "log_bytes", "env",
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
     forgotten, peak, cpu_time, log_bytes, env) = row  # fmt: skip
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
    )


def gpus_text(gpus: Sequence[str]) -> str:
    """Write the UUIDs of GPUs, which have no spaces, as one text."""
    assert not any(" " in gpu for gpu in gpus)
    return " ".join(gpus)


def allocation_of(row: Sequence[Any]) -> Allocation:
    instance_uid, job_uid, run_uid, cpu, memory, disk, gpus, blocks = row
    held = tuple(gpus.split(" ")) if gpus else ()
    return Allocation(instance_uid, job_uid, run_uid, cpu, memory, disk, held, blocks)
