"""
Where a run and its attempts stand, as words.

They stand apart from `run` because a plan knows of a run its state and no more.
"""

from __future__ import annotations

import enum

__all__ = ["FINAL", "NO_EVIDENCE", "AttemptState", "Outdated", "RunState"]


NO_EVIDENCE = "no-evidence"
"""Cause of a run of which it is unknown whether it ever ran: only a person may run it."""


class RunState(enum.StrEnum):
    """The state of a run; the last five are final."""

    PENDING = "pending"
    """Waits for other runs, or for its earliest time."""
    SUBMITTED = "submitted"
    """Waits for a place."""
    PROVISIONING = "provisioning"
    PREPARING = "preparing"
    RUNNING = "running"
    FINISHING = "finishing"
    UNKNOWN = "unknown"
    """A host is silent, or the ledger was rebuilt and has no evidence: never started again."""
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    """Ended because a person asked for it: `state: stopped`, an override, removal."""
    UNSCHEDULABLE = "unschedulable"
    """Never ran and never will: no declared capacity, in any state, can take it."""
    ABORTED = "aborted"
    """Never ran and never will: what it depends on failed. In ledgers of earlier releases this is also
    what no capacity could take."""


FINAL = frozenset(
    {RunState.DONE, RunState.FAILED, RunState.STOPPED, RunState.UNSCHEDULABLE, RunState.ABORTED}
)


class Outdated(enum.IntEnum):
    """How the document of a run differs from what the run executed; the ledger stores the number."""

    NO = 0
    INHERITED = 1
    """A value that the document inherits has changed: only `rerun` runs it again."""
    DOCUMENT = 2
    """The document itself has changed while `state: stopped` kept the run from starting again."""


class AttemptState(enum.StrEnum):
    """Where one try is. `STARTING` is the commit point: from there it may have run."""

    WAITING = "waiting"
    RESERVED = "reserved"
    ABORTING = "aborting"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
