"""
What of a run is at work still although its end is waited for: which job, where, since when.

A stop that does not get through looks like any other from the run's state: one rank hangs in the
kernel, or its host is silent. And a successor waits for a run that has the same name, which
nobody can ask for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fleetform.agents.protocol.states import JobState
from fleetform.model import figures
from fleetform.model.instance import InstanceState
from fleetform.model.run import AttemptState, RunUid

if TYPE_CHECKING:
    from fleetform.model.history import LoggedEvent
    from fleetform.model.instance import Instance
    from fleetform.model.ports import SchedulerState
    from fleetform.model.run import Attempt, Run

__all__ = ["at_work_lines"]

_JOBS_MAX = 5
"""Jobs that are listed: of a gang of a hundred, the first say what is wrong."""

_ASKS = frozenset({"run.stop-requested", "run.stopping"})


def at_work_lines(
    run: Run, book: SchedulerState, events: Iterable[LoggedEvent], *, now_ms: int
) -> tuple[str, ...]:
    """
    Say what is at work of a run that is to end, or of the one that it waits for.

    Args:
        run: As it is now.
        book: What is not over.
        events: Those of its name: when its end was asked for.
        now_ms: For how long ago that was.
    """
    earlier = book.runs.get(RunUid(run.after_uid))
    ending = run if earlier is None else earlier
    attempt = book.attempts.get(ending.uid)
    if attempt is None or attempt.state is AttemptState.WAITING:
        return ()
    hosts = {one.uid: one for one in book.instances}
    lines = [] if earlier is None else [_earlier(earlier, attempt, hosts)]
    if ending.stop_requested:
        asked = max((one.at_ms for one in events if one.kind in _ASKS), default=None)
        since = (
            ""
            if asked is None
            else f", {figures.span(max(0, now_ms - asked))} after the stop was requested"
        )
        jobs = list(_jobs(attempt, hosts, since))
        more = len(jobs) - _JOBS_MAX
        lines += jobs[:_JOBS_MAX] + (
            [f"and {figures.counted(more, 'job')} more"] if more > 0 else []
        )
    return tuple(lines)


def _earlier(run: Run, attempt: Attempt, hosts: Mapping[str, Instance]) -> str:
    names = dict.fromkeys(
        hosts[job.instance_uid].name for job in attempt.jobs if job.instance_uid in hosts
    )
    where = f" on {', '.join(names)}" if names else ""
    asked = f" and is asked to stop: {run.stop_requested}" if run.stop_requested else ""
    return f"the earlier run is {run.state.value}{where}{asked}"


def _jobs(attempt: Attempt, hosts: Mapping[str, Instance], since: str) -> Iterator[str]:
    for job in attempt.jobs:
        host = hosts.get(job.instance_uid)
        if job.state is JobState.FINISHED or host is None:
            continue
        who = f"rank {job.key.rank}" if len(attempt.jobs) > 1 else "its job"
        silent = ": the host is unreachable" if host.state is InstanceState.UNREACHABLE else ""
        yield f"{who} on {host.name} has not ended{since}{silent}"
