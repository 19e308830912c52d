"""What is at work although its end is waited for is told by job, host and time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleetform.agents.protocol.states import JobState
from fleetform.model.history import LoggedEvent
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.ports import RunHistory
from fleetform.model.run import RunState
from fleetform.model.scheduler_state import SchedulerState
from fleetform.views.runs import run_detail
from fleetform.views.why import at_work_lines, explain, why_lines
from unit.views.rows import NOW, history, instance, job

ASKED = LoggedEvent("run.stop-requested", NOW - 24_000, "run train is to end")


def book_of(*histories: RunHistory, instances: tuple[Instance, ...]) -> SchedulerState:
    runs = {one.run.uid: one.run for one in histories}
    attempts = {one.run.uid: one.attempts[-1] for one in histories}
    return SchedulerState(1, runs, attempts, (), instances, (), {})


def ending(**more: Any) -> RunHistory:
    return history(state=RunState.FINISHING, stop_requested="asked by ada", **more)


def test_a_rank_that_does_not_end_is_named() -> None:
    """With its host, whether that is silent, and since when; what has ended is left out."""
    over = replace(job(0), state=JobState.FINISHED)
    gang = ending(jobs=(over, job(1), job(2)))
    hosts = (instance(0), instance(1), instance(2, state=InstanceState.UNREACHABLE))
    lines = at_work_lines(gang.run, book_of(gang, instances=hosts), (ASKED,), now_ms=NOW)
    assert lines == (
        "rank 1 on local-1 has not ended, 24s after the stop was requested",
        "rank 2 on local-2 has not ended, 24s after the stop was requested: the host is unreachable",
    )
    detail = run_detail(gang, instances=hosts, now_ms=NOW)
    told = why_lines(explain(detail, at_work=lines, now_ms=NOW))
    assert f"  - {lines[0]}" in told


def test_a_gang_that_hangs_as_a_whole_is_not_listed_as_a_whole() -> None:
    """The first ranks say what is wrong."""
    gang = ending(jobs=tuple(job(rank) for rank in range(8)))
    hosts = tuple(instance(number) for number in range(8))
    lines = at_work_lines(gang.run, book_of(gang, instances=hosts), (), now_ms=NOW)
    assert lines[0] == "rank 0 on local-0 has not ended"
    assert lines[-1] == "and 3 jobs more"


def test_a_successor_tells_of_the_run_that_it_waits_for() -> None:
    """That has its own name, so nobody could ask for it."""
    earlier = ending()
    successor = history(state=RunState.PENDING, after_uid=earlier.run.uid).run
    book = book_of(earlier, instances=(instance(0),))
    assert at_work_lines(successor, book, (ASKED,), now_ms=NOW) == (
        "the earlier run is finishing on local-0 and is asked to stop: asked by ada",
        "its job on local-0 has not ended, 24s after the stop was requested",
    )


def test_what_nobody_asked_to_end_has_nothing_to_tell() -> None:
    """Most runs are at work because they are to be."""
    running = history()
    book = book_of(running, instances=(instance(0),))
    assert at_work_lines(running.run, book, (), now_ms=NOW) == ()
