"""
In which order the nodes of a run start, and whether its first node ends it.

All nodes are prepared before any of them starts, in every order: what a run waits for between its
first node and the others is one process to begin, not a host to get ready. `startup_order` and
`stop_criteria` are fields of dstack, and mean the same there.
"""

from __future__ import annotations

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.run import Attempt, Job, Template

_NOT_BEGUN = frozenset(
    {
        JobState.WAITING,
        JobState.RESERVED,
        JobState.PREPARING,
        JobState.PREPARED,
        JobState.STARTING,
    }
)


def is_second(template: Template, job: Job) -> bool:
    """Tell whether the node starts after other nodes of its run."""
    match template.startup_order:
        case "master-first":
            return job.key.rank != 0
        case "workers-first":
            return job.key.rank == 0 and template.nodes > 1
        case _:
            return False


def must_wait(template: Template, attempt: Attempt, job: Job) -> bool:
    """
    Tell whether the node may not start yet.

    It waits for nodes to have begun: one that has ended since does not keep the others for ever.
    """
    return is_second(template, job) and any(
        other.state in _NOT_BEGUN for other in attempt.jobs if not is_second(template, other)
    )


def is_done_by_master(template: Template, attempt: Attempt) -> bool:
    """Tell whether node 0 has done the work of the whole run: what the others do no longer counts."""
    if template.stop_criteria != "master-done":
        return False
    return any(
        job.key.rank == 0
        and job.state is JobState.FINISHED
        and job.cause is Cause.EXITED
        and job.exit_code == 0
        for job in attempt.jobs
    )
