"""When a job is to end, by which signal, and why."""

from __future__ import annotations

from typing import Any

from fleetform.agents.host.ending import Ending, Step
from fleetform.agents.protocol.states import Cause


def ending(**fields: Any) -> Ending:
    values: dict[str, Any] = {
        "started_ms": 1000,
        "max_duration_ms": None,
        "grace_ms": 100,
        "checkpoint_lead_ms": None,
    }
    return Ending(**{**values, **fields})


def steps(end: Ending, now_ms: int) -> list[Step]:
    """Take all that is due."""
    taken = []
    while (step := end.due(now_ms)) is not None:
        taken.append(step)
    return taken


def test_nothing_is_due_for_ever() -> None:
    """A job without a limit that nobody stops has nothing to wait for."""
    assert ending().wait_ms(10**12) is None
    assert steps(ending(), 10**12) == []


def test_max_duration() -> None:
    """TERM comes at the limit and KILL after the grace; the cause is the limit."""
    end = ending(max_duration_ms=500)
    assert (end.wait_ms(1000), steps(end, 1499), end.cause) == (500, [], None)
    assert (steps(end, 1500), end.cause) == ([Step.TERM], Cause.MAX_DURATION)
    assert (end.wait_ms(1500), steps(end, 1600)) == (100, [Step.KILL])
    assert end.wait_ms(1600) is None


def test_checkpoint_before_the_limit() -> None:
    """The warning comes its lead before the limit, and a job that ends then ended by itself."""
    end = ending(max_duration_ms=500, checkpoint_lead_ms=200)
    assert (steps(end, 1300), end.cause) == ([Step.CHECKPOINT], None)
    assert steps(end, 1500) == [Step.TERM]


def test_lead_longer_than_the_limit() -> None:
    """A lead beyond the whole duration warns at once and moves nothing else."""
    end = ending(max_duration_ms=500, checkpoint_lead_ms=9000)
    assert steps(end, 1000) == [Step.CHECKPOINT]
    assert end.wait_ms(1000) == 500


def test_stop() -> None:
    """A stop without a checkpoint means TERM now."""
    end = ending()
    end.ask(Cause.STOPPED, None, 2000)
    assert (steps(end, 2000), end.cause) == ([Step.TERM], Cause.STOPPED)
    assert end.wait_ms(2000) == 100


def test_stop_with_checkpoint() -> None:
    """A stop warns at once and leaves the lead before TERM, unless nobody listens."""
    end = ending(checkpoint_lead_ms=300)
    end.ask(Cause.STOPPED, None, 2000)
    assert steps(end, 2000) == [Step.CHECKPOINT]
    assert end.wait_ms(2000) == 300
    end.skip_checkpoint(2010)
    assert steps(end, 2010) == [Step.TERM]
    assert end.wait_ms(2010) == 100


def test_nobody_catches_before_the_limit() -> None:
    """That nobody catches the warning of a limit does not end the job early."""
    end = ending(max_duration_ms=500, checkpoint_lead_ms=200)
    assert steps(end, 1300) == [Step.CHECKPOINT]
    end.skip_checkpoint(1300)
    assert steps(end, 1499) == []


def test_at_once() -> None:
    """A grace of nothing leaves no time to a checkpoint either."""
    end = ending(checkpoint_lead_ms=300)
    end.ask(Cause.STOPPED, 0, 2000)
    assert steps(end, 2000) == [Step.TERM, Step.KILL]


def test_second_stop_can_only_be_faster() -> None:
    """A later request shortens what is left, never lengthens it, and keeps the first cause."""
    end = ending(grace_ms=1000)
    end.ask(Cause.STOPPED, None, 2000)
    assert steps(end, 2000) == [Step.TERM]
    end.ask(Cause.LOST, 60_000, 2100)
    assert (end.wait_ms(2100), end.cause) == (900, Cause.STOPPED)
    end.ask(Cause.LOST, 0, 2200)
    assert steps(end, 2200) == [Step.KILL]


def test_stop_shortly_before_the_limit() -> None:
    """A stop in the warning before a limit does not move the limit back."""
    end = ending(max_duration_ms=500, checkpoint_lead_ms=200)
    steps(end, 1300)
    end.ask(Cause.STOPPED, None, 1400)
    assert end.wait_ms(1400) == 100
    assert (steps(end, 1500), end.cause) == ([Step.TERM], Cause.STOPPED)


def test_a_late_look_takes_all_steps() -> None:
    """After a suspend everything that has come due is taken, in order."""
    end = ending(max_duration_ms=500, checkpoint_lead_ms=200)
    assert steps(end, 10**9) == [Step.CHECKPOINT, Step.TERM, Step.KILL]


def test_silence() -> None:
    """The job is stopped when the controller was silent for too long, and it matters when it was heard."""
    end = ending(silence_ms=5000)
    end.hear(2000)
    assert (end.wait_ms(1000), end.is_silent(6999)) == (6000, False)
    end.hear(4000)
    end.hear(3000)
    assert (end.wait_ms(7000), end.is_silent(8999), end.is_silent(9000)) == (2000, False, True)
    end.end_silence(9000)
    assert (steps(end, 9000), end.cause) == ([Step.TERM], Cause.LOST)
    assert (end.wait_ms(9000), steps(end, 9100)) == (100, [Step.KILL])


def test_a_silence_that_is_noticed_late() -> None:
    """After a suspend all of it is over at once: the moments count from the end of the silence."""
    end = ending(silence_ms=5000, checkpoint_lead_ms=1000)
    end.end_silence(10**9)
    assert steps(end, 10**9) == [Step.CHECKPOINT, Step.TERM, Step.KILL]


def test_a_silence_that_is_over_ends_the_job_all_the_same() -> None:
    """What the silence has begun is not undone by a controller that is heard again."""
    end = ending(silence_ms=5000, checkpoint_lead_ms=1000)
    end.hear(1000)
    end.end_silence(6000)
    end.hear(6500)
    assert steps(end, 6500) == [Step.CHECKPOINT]
    assert (end.is_silent(6500), steps(end, 7000), steps(end, 7100)) == (
        False,
        [Step.TERM],
        [Step.KILL],
    )


def test_a_slow_stop_ends_with_the_silence() -> None:
    """A stop with a long grace is cut by the silence, and keeps its cause."""
    end = ending(silence_ms=5000)
    end.hear(1000)
    end.ask(Cause.STOPPED, 3_600_000, 2000)
    assert steps(end, 2000) == [Step.TERM]
    end.end_silence(6000)
    assert (steps(end, 6000), end.cause) == ([Step.KILL], Cause.STOPPED)
