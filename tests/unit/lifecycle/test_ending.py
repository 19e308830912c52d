"""A run as it ended."""

from __future__ import annotations

import pytest

from fleetform.agents.protocol.states import Cause
from fleetform.lifecycle import as_ended
from fleetform.model.decision import Finish
from fleetform.model.run import RunState
from unit.lifecycle.rows import NOW, attempt, ended, run

DONE = Finish("done", "exited", "")
HEARD = NOW + 46_000


def test_how_long_a_run_ran_does_not_depend_on_when_its_end_was_heard() -> None:
    """From the first job's begin to the last one's end, by their hosts' clocks."""
    jobs = attempt(
        ended(Cause.EXITED, 0, started_at_ms=NOW + 5, finished_at_ms=NOW + 20),
        ended(Cause.EXITED, 0, started_at_ms=NOW + 3, finished_at_ms=NOW + 30),
    )
    over = as_ended(run(nodes=2, attempt=1), jobs, DONE, HEARD)
    assert (over.started_at_ms, over.finished_at_ms) == (NOW + 3, NOW + 30)
    assert over.state is RunState.DONE


def test_a_later_attempt_does_not_hide_when_the_run_began() -> None:
    """The time of all attempts counts, as `ps` counts it."""
    again = attempt(
        ended(Cause.EXITED, 0, started_at_ms=NOW + 90, finished_at_ms=NOW + 99), number=2
    )
    over = as_ended(run(attempt=2), again, DONE, HEARD)
    assert (over.started_at_ms, over.finished_at_ms) == (None, NOW + 99)


@pytest.mark.parametrize("jobs", [None, attempt(), attempt({})])
def test_without_word_of_a_job_the_end_is_when_it_was_heard(jobs) -> None:
    """A run that was never placed, or whose host is gone, ends when that is known."""
    assert as_ended(run(attempt=1), jobs, DONE, HEARD).finished_at_ms == HEARD
