"""
What an attempt whose jobs have all ended means for its run.

Ends are told apart by cause, never by exit code alone: a job that exits 0 because it was told
to stop has not done its work. In a gang the first that ended badly decides; what happened to
the others is a consequence.
"""

from __future__ import annotations

from dataclasses import replace

from fleetform.agents.protocol.states import Cause
from fleetform.lifecycle.retry import (
    PREPARE_ATTEMPTS_MAX,
    next_attempt_ms,
    retry_delay_seconds,
)
from fleetform.lifecycle.summary import exit_summary
from fleetform.model import figures
from fleetform.model.decision import Finish, Requeue
from fleetform.model.override import EMERGENCY, is_emergency_end
from fleetform.model.run import Attempt, Job, Run, RunState

PREPARE_TIMEOUT = "prepare_timeout"
START_TIMEOUT = "start_timeout"
"""Causes of an attempt that was given up; no job has them."""

NOTHING_RAN = frozenset({Cause.NEVER_STARTED, Cause.PREPARE_FAILED})
"""Proof that no process of the job existed on its host."""

_OWN_ENDS = frozenset({Cause.EXITED, Cause.SIGNAL, Cause.OOM, Cause.MAX_DURATION})
"""Ends that a stop request did not bring about."""

_CONSEQUENCES = frozenset({Cause.STOPPED, Cause.NEVER_STARTED})
"""Ends of ranks that were stopped because of another one."""


def as_ended(run: Run, attempt: Attempt | None, finish: Finish, now_ms: int) -> Run:
    """
    Return the run as it is once `finish` is written; its times are its jobs' own.

    Whoever hears of an end hours later, because nobody managed, still says how long it ran.
    """
    begun_ms = None if attempt is None or run.attempt > 1 else attempt.begun_ms
    over_ms = None if attempt is None else attempt.over_ms
    return replace(
        run,
        state=RunState(finish.state),
        cause=finish.cause,
        message=finish.message,
        started_at_ms=run.started_at_ms if begun_ms is None else begun_ms,
        finished_at_ms=now_ms if over_ms is None else over_ms,
    )


def stop_wish(run: Run) -> str:
    """Say why a run is to end before its work is done; empty: it is not."""
    if run.stop_requested:
        return run.stop_requested
    return "its document says `state: stopped`" if run.template.wanted == "stopped" else ""


def ended_badly(job: Job) -> bool:
    """Tell whether a finished job keeps its gang from going on."""
    return job.cause is not Cause.EXITED or job.exit_code != 0


def culprit(jobs: tuple[Job, ...]) -> Job | None:
    """
    Return the job whose end explains the attempt's, or None where none ended by itself.

    The earliest bad end; hosts' clocks differ, so ranks break ties and near misses are possible.
    """
    candidates = [job for job in jobs if ended_badly(job) and job.cause not in _CONSEQUENCES]
    return min(candidates, key=_earliest, default=None)


def judge_end(run: Run, attempt: Attempt, *, now_ms: int) -> Requeue | Finish:
    """Decide on an attempt whose jobs are all finished."""
    jobs = attempt.jobs
    if not any(ended_badly(job) for job in jobs):
        return Finish(RunState.DONE, Cause.EXITED.value, "")
    job = culprit(jobs)
    if wish := stop_wish(run):
        if job is not None and job.cause in _OWN_ENDS:
            return _failed(run, job)
        cause = EMERGENCY if is_emergency_end(wish) else Cause.STOPPED.value
        return Finish(RunState.STOPPED, cause, wish)
    if all(one.cause in NOTHING_RAN for one in jobs):
        return _nothing_ran(run, attempt, job or jobs[0], now_ms)
    if job is None:
        job = next((one for one in jobs if one.cause is Cause.NEVER_STARTED), None)
    if job is None:
        return _stopped(run, attempt, now_ms)
    at_ms = next_attempt_ms(run, attempt, job.cause, job.exit_code, now_ms=now_ms)
    if at_ms is None:
        return _failed(run, job)
    return Requeue(at_ms, _cause(job), exit_summary(job, run.template))


def _nothing_ran(run: Run, attempt: Attempt, job: Job, now_ms: int) -> Requeue | Finish:
    """Place it anew; only a run that is refused again and again is given up."""
    summary = exit_summary(job, run.template)
    failures = run.uncounted + 1
    if job.cause is Cause.PREPARE_FAILED and failures >= PREPARE_ATTEMPTS_MAX:
        times = figures.counted(failures, "attempt")
        return Finish(RunState.FAILED, _cause(job), f"{summary} (gave up after {times})")
    delay = retry_delay_seconds(1, failures)
    return Requeue(
        now_ms + delay * 1000, attempt.cause or _cause(job), attempt.message or summary, False
    )


def _stopped(run: Run, attempt: Attempt, now_ms: int) -> Requeue | Finish:
    """
    Every rank was stopped and nobody asked for the run's end: the attempt itself was given up.

    That is so when a rank did not start in time and was in fact running by the time the stop
    reached it. Its host is to blame, as for a rank that is lost.
    """
    if attempt.cause != START_TIMEOUT:
        return Finish(
            RunState.STOPPED, Cause.STOPPED.value, attempt.message or "stopped on its host"
        )
    at_ms = next_attempt_ms(run, attempt, Cause.LOST, None, now_ms=now_ms)
    if at_ms is None:
        return Finish(RunState.FAILED, START_TIMEOUT, attempt.message)
    return Requeue(at_ms, START_TIMEOUT, attempt.message)


def _failed(run: Run, job: Job) -> Finish:
    return Finish(RunState.FAILED, _cause(job), exit_summary(job, run.template))


def _earliest(job: Job) -> tuple[bool, int, int]:
    return (job.finished_at_ms is None, job.finished_at_ms or 0, job.key.rank)


def _cause(job: Job) -> str:
    assert job.cause is not None, job.key
    return job.cause.value
