"""What people see of a run."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle import exit_summary, run_state
from fleetform.model.decision import Waiting
from fleetform.model.run import FINAL, AttemptState, RunState
from unit.lifecycle.rows import OK, attempt, ended, job, run

SEEN = [
    (AttemptState.RESERVED, JobState.RESERVED, RunState.PREPARING),
    (AttemptState.RESERVED, JobState.PREPARED, RunState.PREPARING),
    (AttemptState.STARTING, JobState.STARTING, RunState.PREPARING),
    (AttemptState.RUNNING, JobState.RUNNING, RunState.RUNNING),
    (AttemptState.RUNNING, JobState.CLEANING, RunState.FINISHING),
    (AttemptState.STOPPING, JobState.RUNNING, RunState.FINISHING),
    (AttemptState.ABORTING, JobState.PREPARED, RunState.FINISHING),
]


@pytest.mark.parametrize(("state", "job_state", "expected"), SEEN)
def test_attempts_that_have_a_place(state, job_state, expected):
    """One word from the attempt and its jobs."""
    assert run_state(run(), attempt({"state": job_state}, state=state)) is expected


@pytest.mark.parametrize("state", sorted(FINAL))
def test_what_is_final_stays(state: RunState):
    """Whatever the rows of its last attempt say."""
    assert run_state(run(state=state), attempt({"state": JobState.RUNNING})) is state


def test_a_silent_host_makes_a_run_unknown_until_its_job_is_over():
    """Silence is shown, and proves nothing."""
    assert run_state(run(), attempt({}), silent={"i0"}) is RunState.UNKNOWN
    assert run_state(run(), attempt(OK), silent={"i0"}) is RunState.FINISHING


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("dependency", RunState.PENDING),
        ("not-before", RunState.PENDING),
        ("fleet-not-ready", RunState.PROVISIONING),
        ("resources", RunState.SUBMITTED),
    ],
)
def test_what_it_waits_for_names_the_state(code: str, expected: RunState):
    """Waiting for others, for hosts, or for room."""
    waiting = attempt({"state": JobState.WAITING}, state=AttemptState.WAITING)
    row = run(state=RunState.SUBMITTED)
    assert run_state(row, waiting, waiting=(Waiting(code, ""),)) is expected
    assert run_state(row, None) is RunState.SUBMITTED


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (ended(Cause.EXITED, 127), "exit code 127 (command not found)"),
        (ended(Cause.SIGNAL, signal=64), "killed by signal 64"),
        (ended(Cause.OOM, memory_bytes=1 << 30), "out of memory: more than 1GB"),
        (ended(Cause.MAX_DURATION), "ran longer than its max_duration"),
        (ended(Cause.NEVER_STARTED), "never started"),
    ],
)
def test_phrases_where_something_is_not_known(end, expected):
    """A phrase says what there is and invents nothing."""
    assert exit_summary(job(**end), run().template) == expected
