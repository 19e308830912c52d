"""What people see of a run: one word from its rows."""

from __future__ import annotations

from collections.abc import Container, Sequence

from fleetform.agents.protocol.states import JobState
from fleetform.model.decision import Waiting
from fleetform.model.run import FINAL, Attempt, AttemptState, Run, RunState

_PENDING_CODES = frozenset({"dependency", "not-before", "stopped"})
"""Reasons that are not about room: the run is not in the queue for a place yet."""


def run_state(
    run: Run,
    attempt: Attempt | None,
    *,
    waiting: Sequence[Waiting] = (),
    silent: Container[str] = frozenset(),
) -> RunState:
    """
    Say where a run is.

    Args:
        run: Its row; a final state stays.
        attempt: Its latest attempt, or None before the first.
        waiting: Why it waits, where the scheduler has said so.
        silent: Uids of instances that do not answer.
    """
    if run.state in FINAL:
        return run.state
    if attempt is None or attempt.state is AttemptState.WAITING:
        return _waiting_state(run, waiting)
    states = {job.state for job in attempt.jobs if job.state is not JobState.FINISHED}
    if JobState.UNKNOWN in states or any(
        job.instance_uid in silent and job.state is not JobState.FINISHED for job in attempt.jobs
    ):
        return RunState.UNKNOWN
    if attempt.state in {AttemptState.STOPPING, AttemptState.ABORTING} or not states:
        return RunState.FINISHING
    if JobState.RUNNING in states:
        return RunState.RUNNING
    if JobState.CLEANING in states:
        return RunState.FINISHING
    return RunState.PREPARING


def _waiting_state(run: Run, waiting: Sequence[Waiting]) -> RunState:
    codes = {reason.code for reason in waiting}
    if codes & _PENDING_CODES:
        return RunState.PENDING
    if "fleet-not-ready" in codes:
        return RunState.PROVISIONING
    if codes or run.state is not RunState.PENDING:
        return RunState.SUBMITTED if run.state is not RunState.UNKNOWN else RunState.UNKNOWN
    return RunState.PENDING
