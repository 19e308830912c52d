"""
The states of one job, and which may follow which.

One job is what one host does for one attempt of a run. Agent and controller hold the
same table, so that a late, doubled or foreign message can be told from news: a state
only ever moves to the right. Standard library only, Python 3.9: this module travels to
hosts inside the agent.
"""

from __future__ import annotations

import enum


class JobState(str, enum.Enum):
    """
    Where a job is, between ledger and agent.

    `WAITING` and `RESERVED` are known to the ledger only. `UNKNOWN` is a job without a supervisor
    whose processes may still run: its units stay its own until its end is proven. `FINISHED`
    carries a `Cause`.
    """

    WAITING = "waiting"
    RESERVED = "reserved"
    PREPARING = "preparing"
    PREPARED = "prepared"
    STARTING = "starting"
    RUNNING = "running"
    CLEANING = "cleaning"
    UNKNOWN = "unknown"
    FINISHED = "finished"


class Cause(str, enum.Enum):
    """
    Why a job ended. People and retry rules read the cause, never the exit code alone.

    `NEVER_STARTED` is proof that no process of the job existed on that host.
    `PREPARE_FAILED` is the same with a reason on the host's side. `INTERRUPTED`: the cloud takes its host away, and
    has said so before.
    """

    EXITED = "exited"
    SIGNAL = "signal"
    OOM = "oom"
    MAX_DURATION = "max_duration"
    STOPPED = "stopped"
    LOST = "lost"
    NEVER_STARTED = "never_started"
    PREPARE_FAILED = "prepare_failed"
    INTERRUPTED = "interrupted"


TAKEN_AWAY = "the cloud takes the host away"
"""How the message of each job begins that is `INTERRUPTED`, and what its controller hears while it ends."""


# The one order by which both ends compare: of two reports the one further on is the newer.
ORDER = {state: number for number, state in enumerate(JobState)}


def moves_forward(known: JobState, reported: JobState) -> bool:
    """Tell whether `reported` is news to a controller that knows `known`."""
    return ORDER[reported] > ORDER[known]


# A process of the job may exist on the host in these, so the host's units are not free.
MAY_RUN = frozenset({JobState.STARTING, JobState.RUNNING, JobState.CLEANING, JobState.UNKNOWN})
