"""
Which message a host is due, from a job's row and what the host last said of it.

This is the whole of recovery on the controller's side: after any crash, lost message or
reconnect, comparing each row with its record tells what is still to be sent. Sending one twice
does no harm, because an agent answers an echo with what it knows. See protocols, section 1.
"""

from __future__ import annotations

import enum
from collections.abc import Container, Mapping

from fleetform.agents.protocol.messages import JobKey, JobRecord
from fleetform.agents.protocol.states import JobState
from fleetform.model.run import Attempt, Job


class Due(enum.StrEnum):
    PREPARE = "prepare"
    """With `go` once the commit point has passed; see `request.job_request`."""
    START = "start"
    STOP = "stop"
    FORGET = "forget"


def due(
    job: Job, record: JobRecord | None, *, gang: int = 1, output_complete: bool = True
) -> Due | None:
    """
    Say which message the job's host is due now, or None.

    Args:
        job: The committed row.
        record: What the host said last; None: it has said hello and does not know the job.
        gang: How many jobs the attempt has.
        output_complete: All that the job wrote has been taken in: it may be forgotten.
    """
    if not job.instance_uid or job.forgotten:
        return None
    if job.state is JobState.FINISHED:
        return _due_finished(job, record, output_complete=output_complete)
    if job.stop_wanted:
        return _due_stop(job, record)
    if record is not None and record.state is JobState.FINISHED:
        # News that the ledger has not taken in yet.
        return None
    return _due_alive(job, record, gang)


def commands(
    attempt: Attempt,
    records: Mapping[JobKey, JobRecord],
    incomplete: Container[JobKey] = frozenset(),
) -> tuple[tuple[Job, Due], ...]:
    """Say what is due for each job of an attempt, in order of rank; `incomplete` lack output."""
    gang = len(attempt.jobs)
    found = (
        (
            job,
            due(job, records.get(job.key), gang=gang, output_complete=job.key not in incomplete),
        )
        for job in attempt.jobs
    )
    return tuple((job, what) for job, what in found if what is not None)


def _due_finished(job: Job, record: JobRecord | None, *, output_complete: bool) -> Due | None:
    if record is not None and record.state is not JobState.FINISHED:
        # The row is over and the host still has the job, as when a refusal was believed that the
        # host took back: it must not run beside the next attempt.
        return Due.STOP
    return Due.FORGET if output_complete else None


def _due_stop(job: Job, record: JobRecord | None) -> Due | None:
    if record is None:
        return Due.STOP
    if record.state is JobState.FINISHED or record.gen >= job.gen:
        return None
    return Due.STOP


_SENT_WHILE: dict[JobState, Due] = {
    JobState.RESERVED: Due.PREPARE,
    JobState.PREPARING: Due.PREPARE,
    JobState.PREPARED: Due.PREPARE,
    JobState.STARTING: Due.PREPARE,
}
"""
What a host that does not know the job is sent, by the row's state. From `RUNNING` on there was
a process: a host without a record of it has lost its memory, and a second start might be one
too many.
"""


def _due_alive(job: Job, record: JobRecord | None, gang: int) -> Due | None:
    if record is None:
        return _SENT_WHILE.get(job.state)
    if job.state is JobState.STARTING and record.state is JobState.PREPARED:
        # A gang's go; and for one alone, an agent that restarted between the two phases.
        return Due.START
    if record.state in {JobState.WAITING, JobState.RESERVED}:
        return _SENT_WHILE.get(job.state)
    return None
