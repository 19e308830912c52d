"""Whether a failed attempt is followed by another, and when."""

from __future__ import annotations

from fleetform.agents.protocol.states import Cause
from fleetform.model.run import Attempt, Retry, Run

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
