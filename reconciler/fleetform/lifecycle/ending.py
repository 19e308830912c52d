"""
What an attempt whose jobs have all ended means for its run.

Ends are told apart by cause, never by exit code alone: a job that exits 0 because it was told
to stop has not done its work. In a gang the first that ended badly decides; what happened to
the others is a consequence.
"""

from __future__ import annotations

from dataclasses import replace

from fleetform.agents.protocol.states import Cause
from fleetform.lifecycle.node_order import is_done_by_master
from fleetform.model import figures
from fleetform.model.decision import Finish, Requeue
from fleetform.model.override import EMERGENCY, is_emergency_end
from fleetform.model.run import Attempt, Job, Retry, Run, RunState, Template

PREPARE_TIMEOUT = "prepare_timeout"
START_TIMEOUT = "start_timeout"
"""Causes of an attempt that was given up; no job has them."""

MASTER_DONE = "master_done"
"""Why ranks are stopped whose run node 0 has done; neither a job nor a run has this cause."""

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
    if not any(ended_badly(job) for job in jobs) or is_done_by_master(run.template, attempt):
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
    """Place it again; only a run that is refused again and again is given up."""
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
    Every rank was stopped without a request for the run's end: the attempt itself was given up.

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


# Whether a failed attempt is followed by another, and when.

DELAY_MAX_SECONDS = 600

PREPARE_ATTEMPTS_MAX = 6
"""
Attempts that could not be prepared before the run fails. With delays of 1, 2, 4, 8 and 16 s a
passing fault (a full disk being cleaned, a host restarting) has half a minute to pass; a mistake in
the document (a mount over a file) is told soon.
"""

_EVENTS: dict[Cause, frozenset[str]] = {
    Cause.EXITED: frozenset({"error"}),
    Cause.SIGNAL: frozenset({"error"}),
    Cause.OOM: frozenset({"error"}),
    Cause.MAX_DURATION: frozenset({"time-limit"}),
    # The host is gone, and the job with it: dstack's word for that is interruption.
    Cause.LOST: frozenset({"node-failure", "interruption"}),
    Cause.INTERRUPTED: frozenset({"interruption"}),
    # A rank that never started while others ran: its host failed between the two phases.
    Cause.NEVER_STARTED: frozenset({"node-failure", "interruption"}),
    Cause.PREPARE_FAILED: frozenset({"node-failure", "interruption"}),
}
"""Which of `retry.on` an end is. A job that was stopped is wanted to be over: none."""


def next_attempt_ms(
    run: Run, attempt: Attempt, cause: Cause | None, exit_code: int | None, *, now_ms: int
) -> int | None:
    """
    Return when the next attempt may be placed at the earliest, or None for no further one.

    `cause` and `exit_code` are of the job whose end decided. Attempts in which nothing ran do
    not count.
    """
    retry = run.template.retry
    if retry is None or not _is_asked(retry, cause, exit_code):
        return None
    counted = attempt.number - run.uncounted
    if retry.max_attempts is not None and counted >= retry.max_attempts:
        return None
    at_ms = now_ms + retry_delay_seconds(retry.delay_seconds, counted) * 1000
    if retry.window_seconds is not None:
        window_end_ms = run.submitted_at_ms + retry.window_seconds * 1000
        if at_ms >= window_end_ms:
            return None
    return at_ms


def _is_asked(retry: Retry, cause: Cause | None, exit_code: int | None) -> bool:
    if cause is Cause.EXITED and exit_code in retry.requeue_exit_codes:
        return True
    return cause is not None and bool(_EVENTS.get(cause, frozenset()) & retry.on)


def retry_delay_seconds(first_seconds: int, failures: int) -> int:
    """
    Return the pause after the n-th failure: doubled each time, up to 10 minutes.

    Without a delay of its own, a run is tried again at once the first time and then after 1,
    2, 4 s: an attempt that fails at once would otherwise keep a host busy with nothing else.
    """
    assert failures >= 1, failures
    cap = max(first_seconds, DELAY_MAX_SECONDS)
    # Doubling 60 times passes any cap, and keeps the numbers small.
    doublings = min(failures - 1, 60)
    if first_seconds:
        return int(min(first_seconds << doublings, cap))
    return int(min(1 << (doublings - 1), cap)) if doublings else 0


# How a job ended, in a phrase for people: `exit code 3 on rank 1`.

_SIGNALS = {
    1: "HUP",
    2: "INT",
    3: "QUIT",
    4: "ILL",
    6: "ABRT",
    7: "BUS",
    8: "FPE",
    9: "KILL",
    10: "USR1",
    11: "SEGV",
    12: "USR2",
    13: "PIPE",
    14: "ALRM",
    15: "TERM",
    24: "XCPU",
    25: "XFSZ",
}
"""Numbers of Linux on x86-64 and arm64, signal(7): the host's, whatever runs this."""

_SHELL_CODES = {126: "not executable", 127: "command not found"}
"""What a POSIX shell means by them (XCU 2.8.2); a program may mean something else."""


def exit_summary(job: Job, template: Template) -> str:
    """Say how a finished job ended; names its rank where there are several."""
    phrase = _phrase(job, template)
    return f"{phrase} on rank {job.key.rank}" if template.nodes > 1 else phrase


def _phrase(job: Job, template: Template) -> str:
    match job.cause:
        case Cause.EXITED:
            hint = _SHELL_CODES.get(job.exit_code or 0, "")
            return f"exit code {job.exit_code}" + (f" ({hint})" if hint else "")
        case Cause.SIGNAL:
            name = _SIGNALS.get(job.signal or 0, "")
            return f"killed by signal {job.signal}" + (f" ({name})" if name else "")
        case Cause.OOM:
            return _out_of_memory(job)
        case Cause.MAX_DURATION:
            seconds = template.max_duration_seconds
            limit = "" if seconds is None else f" of {figures.span(seconds * 1000)}"
            return f"ran longer than its max_duration{limit}"
        case Cause.STOPPED:
            return "stopped"
        case Cause.LOST:
            return _with_detail("lost", job.message)
        case Cause.INTERRUPTED:
            return _with_detail("interrupted", job.message)
        case Cause.PREPARE_FAILED:
            return _with_detail("could not be prepared", job.message)
        case _:
            return _with_detail("never started", job.message)


def _out_of_memory(job: Job) -> str:
    if job.peak_memory_bytes is None:
        return f"out of memory: more than {figures.size(job.memory_bytes)}"
    used, limit = figures.size(job.peak_memory_bytes), figures.size(job.memory_bytes)
    # The kernel kills at the limit, so that the highest reading is often the limit itself.
    return f"out of memory: {used} of {limit}"


def _with_detail(phrase: str, detail: str) -> str:
    return f"{phrase}: {detail}" if detail else phrase
