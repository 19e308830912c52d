"""
What an agent that has just started makes of what an earlier one left behind.

Each job's directory says how far it got, and the directory is believed over the record: an
agent may have died between the two.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

from fleetform.agents.host.effects import (
    Effect,
    RemoveJobDirectory,
    SignalStop,
    WatchSupervisor,
)
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.memory import Entry
from fleetform.agents.host.result import Result
from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState


class Condition(enum.Enum):
    """How far a job's directory says that the job got."""

    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    """Preparing was interrupted; nothing can have started."""
    PREPARED = "prepared"
    RUNNING = "running"
    """Its supervisor holds the lock."""
    ABANDONED = "abandoned"
    """It was started, its lock is free, and there is no result."""
    ENDED = "ended"


@dataclass(frozen=True)
class Found:
    """
    What one directory says. `launch` is None where it cannot be read, `result` unless ENDED.

    `log_bytes` is how much output is there, in case nobody counted it.
    """

    condition: Condition
    launch: Launch | None = None
    result: Result | None = None
    log_bytes: int = 0


ABSENT = Found(Condition.ABSENT)


def recover(journal: Journal, found: Mapping[str, Found], *, boot_id: str, now_ms: int) -> list[Effect]:  # fmt: skip
    """
    Bring the journal's records in line with the directories, keyed by job uid.

    To be called once, when no supervisor can be between its fork and its lock.
    """
    effects: list[Effect] = []
    known = {entry.record.job_uid: entry for entry in journal.entries()}
    for job_uid, entry in known.items():
        seen = found.get(job_uid, ABSENT)
        if entry.live:
            effects += _resume(journal, entry, seen, boot_id, now_ms)
        elif entry.record.tombstone and seen.condition is not Condition.ABSENT:
            effects.append(RemoveJobDirectory(job_uid))
    for job_uid, seen in found.items():
        if job_uid not in known:
            effects += _take_in(journal, job_uid, seen, now_ms)
    return effects


def _resume(journal: Journal, entry: Entry, seen: Found, boot_id: str, now_ms: int) -> list[Effect]:
    uid, condition = entry.record.job_uid, seen.condition
    if condition is Condition.ENDED and seen.result is not None:
        return journal.supervisor_ended(seen.result)
    if condition is Condition.RUNNING:
        return _resume_running(journal, entry, now_ms)
    if entry.boot_id != boot_id:
        # Also where it looks merely prepared: what said that it had started was not synced.
        message = "the host was rebooted while it had the job"
        return journal.lost(uid, message, seen.log_bytes, now_ms)
    if condition is Condition.PREPARED:
        return journal.found_prepared(uid, now_ms)
    never_started = entry.record.state is JobState.PREPARING
    if never_started and condition in {Condition.INCOMPLETE, Condition.ABSENT}:
        return [*journal.forget_unprepared(uid), RemoveJobDirectory(uid)]
    # The lock is free and no result is there, or the directory itself is gone.
    journal.supervisor_started(uid, now_ms)
    return journal.supervisor_vanished(uid)


def _resume_running(journal: Journal, entry: Entry, now_ms: int) -> list[Effect]:
    uid = entry.record.job_uid
    effects = journal.supervisor_started(uid, now_ms)
    effects.append(WatchSupervisor(uid))
    if entry.stop is not None:
        # The last agent may have died before the supervisor heard of it.
        effects.append(SignalStop(uid, entry.stop.cause, entry.stop.grace_seconds))
    return effects


def _take_in(journal: Journal, job_uid: str, seen: Found, now_ms: int) -> list[Effect]:
    """A directory without a record: a power cut took the record, or the store was lost."""
    source = seen.result or seen.launch
    if source is None or seen.condition in {Condition.PREPARED, Condition.INCOMPLETE}:
        return [RemoveJobDirectory(job_uid)]
    key = JobKey(source.run_uid, source.attempt, source.rank)
    record = JobRecord(key, job_uid, source.gen, source.digest, JobState.STARTING)
    effects = journal.adopt(record)
    if not effects:
        return [RemoveJobDirectory(job_uid)]
    if seen.condition is Condition.RUNNING:
        started = journal.supervisor_started(job_uid, now_ms)
        return [*effects, *started, WatchSupervisor(job_uid)]
    if seen.result is not None:
        return [*effects, *journal.supervisor_ended(seen.result)]
    return [*effects, *journal.supervisor_vanished(job_uid)]
