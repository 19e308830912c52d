"""
What happens next to a run, from its rows alone.

`advance` reads the rows of the latest attempt and never the event that changed them, so that it
may be asked at any time and after any crash. It never guesses: a job is over when its row says
so, which takes the host's record or another proof of death, and silence is none.
"""

from __future__ import annotations

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle.ending import (
    PREPARE_TIMEOUT,
    START_TIMEOUT,
    culprit,
    ended_badly,
    judge_end,
    stop_wish,
)
from fleetform.lifecycle.summary import exit_summary
from fleetform.model import figures
from fleetform.model.decision import AllPrepared, Next, StopGang, Wait
from fleetform.model.run import FINAL, Attempt, AttemptState, Job, Run

PREPARE_TIMEOUT_MS = 600_000
"""How long a gang's hosts may take to prepare: files of some GB over a slow link take minutes."""

START_TIMEOUT_MS = 60_000
"""How long after the commit point a rank may be missing: a start is one small message."""

_COMMITTED = frozenset({AttemptState.STARTING, AttemptState.RUNNING})


def advance(
    run: Run,
    attempt: Attempt,
    *,
    now_ms: int,
    start_timeout_ms: int = START_TIMEOUT_MS,
    prepare_timeout_ms: int = PREPARE_TIMEOUT_MS,
) -> Next:
    """
    Decide what happens next to `run`, whose latest attempt is `attempt`.

    Returns:
        `StopGang` only while some job has not been told to stop, `Requeue` and `Finish` only
        once all jobs have ended, `AllPrepared` only before the commit point: carried out, each
        leads to rows from which it is not decided again.
    """
    if run.state in FINAL or not attempt.jobs:
        return Wait()
    living = [job for job in attempt.jobs if job.state is not JobState.FINISHED]
    if not living:
        return judge_end(run, attempt, now_ms=now_ms)
    if all(job.stop_wanted for job in living):
        return Wait()
    stop = _reason_to_stop(run, attempt, now_ms, start_timeout_ms, prepare_timeout_ms)
    if stop is not None:
        return stop
    if attempt.state is AttemptState.RESERVED and all(
        job.state is JobState.PREPARED for job in attempt.jobs
    ):
        return AllPrepared()
    return Wait()


def _reason_to_stop(
    run: Run, attempt: Attempt, now_ms: int, start_timeout_ms: int, prepare_timeout_ms: int
) -> StopGang | None:
    # Also before it has a place: a run that waited for ever would keep what depends on it waiting.
    if wish := stop_wish(run):
        return StopGang(Cause.STOPPED.value, wish)
    if any(job.state is JobState.FINISHED and ended_badly(job) for job in attempt.jobs):
        return _broken(run, attempt)
    unknown = [job for job in attempt.jobs if job.state is JobState.UNKNOWN]
    if unknown and len(attempt.jobs) > 1:
        # Its end may never be proven, and the others wait for it meanwhile.
        return StopGang(Cause.LOST.value, f"rank {unknown[0].key.rank}: {unknown[0].message}")
    if attempt.state is AttemptState.RESERVED:
        late = [job for job in attempt.jobs if job.state is not JobState.PREPARED]
        if _is_over(attempt.reserved_at_ms, prepare_timeout_ms, now_ms):
            return StopGang(PREPARE_TIMEOUT, _late("prepared", late, prepare_timeout_ms))
    if attempt.state in _COMMITTED and len(attempt.jobs) > 1:
        late = [job for job in attempt.jobs if job.state is JobState.STARTING]
        if late and _is_over(attempt.starting_at_ms, start_timeout_ms, now_ms):
            return StopGang(START_TIMEOUT, _late("started", late, start_timeout_ms))
    return None


def _broken(run: Run, attempt: Attempt) -> StopGang:
    """A gang that has lost a rank is stopped whole: the others would wait for it for ever."""
    finished = tuple(job for job in attempt.jobs if job.state is JobState.FINISHED)
    job = culprit(finished) or next(job for job in finished if ended_badly(job))
    assert job.cause is not None, job.key
    return StopGang(job.cause.value, exit_summary(job, run.template))


def _is_over(since_ms: int | None, timeout_ms: int, now_ms: int) -> bool:
    """Tell whether a deadline has passed; one that was never set has not."""
    return since_ms is not None and now_ms - since_ms >= timeout_ms


def _late(verb: str, late: list[Job], timeout_ms: int) -> str:
    ranks = ", ".join(str(job.key.rank) for job in late[:5])
    more = f" and {len(late) - 5} more" if len(late) > 5 else ""
    noun = "rank" if len(late) == 1 else "ranks"
    return f"{noun} {ranks}{more} not {verb} within {figures.span(timeout_ms)}"
