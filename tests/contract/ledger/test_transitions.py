"""Verdicts: what a controller decided is written where it still holds."""

from __future__ import annotations

from contract.ledgers import (
    Desk,
    prepared_gang,
    submit_step,
)
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.decision import AllPrepared, Finish, Requeue, StopGang
from fleetform.model.run import AttemptState, RunState
from fleetform.schedule.queue import queue_from_state


def test_gang_passes_its_commit_point(two_hosts: Desk) -> None:
    """With all ranks prepared the attempt is starting, and it runs once every rank does."""
    desk = two_hosts
    prepared_gang(desk)
    desk.decide("g", AllPrepared())
    uid = desk.run("g").uid
    attempt = desk.ledger.read_book().attempts[uid]
    assert attempt.state is AttemptState.STARTING
    assert [(job.state, job.gen) for job in attempt.jobs] == [(JobState.STARTING, 3)] * 2
    desk.say(desk.record("g", JobState.RUNNING))
    assert desk.ledger.read_book().attempts[uid].state is AttemptState.STARTING
    assert desk.run("g").state is RunState.RUNNING
    desk.say(desk.record("g", JobState.RUNNING, rank=1), on=1)
    assert desk.ledger.read_book().attempts[uid].state is AttemptState.RUNNING


def test_deadlines_count_from_reservation_and_commit_point(two_hosts: Desk) -> None:
    """An attempt knows when it was reserved and when it passed its commit point."""
    desk = two_hosts
    desk.submit(submit_step("one"))
    desk.place("one")
    (alone,) = desk.ledger.read_book().attempts.values()
    assert (alone.reserved_at_ms, alone.starting_at_ms) == (10_000, 10_000)
    prepared_gang(desk)
    uid = desk.run("g").uid
    reserved = desk.ledger.read_book().attempts[uid]
    assert (reserved.reserved_at_ms, reserved.starting_at_ms) == (10_000, None)
    desk.now_ms = 12_000
    desk.decide("g", AllPrepared())
    started = desk.ledger.read_book().attempts[uid]
    assert (started.reserved_at_ms, started.starting_at_ms) == (10_000, 12_000)


def test_commit_point_needs_all_prepared(two_hosts: Desk) -> None:
    """A verdict that is out of date does not start a gang."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    desk.place("g", desk.share(0), desk.share(1, on=1))
    desk.say(desk.record("g", JobState.PREPARED))
    desk.decide("g", AllPrepared())
    assert desk.ledger.read_book().attempts[desk.run("g").uid].state is AttemptState.RESERVED


def test_commit_point_needs_unchanged_boots(two_hosts: Desk) -> None:
    """A host that was rebooted after it prepared keeps the gang from starting."""
    desk = two_hosts
    prepared_gang(desk)
    told = desk.record("g", JobState.PREPARED)
    desk.greet(desk.instances[0], boot="boot-2", records=(told,))
    desk.decide("g", AllPrepared())
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.RESERVED
    assert attempt.jobs[0].cause is Cause.NEVER_STARTED


def test_gang_is_taken_back_before_its_commit_point(two_hosts: Desk) -> None:
    """An attempt that is stopped early is aborting, and its hosts are told."""
    desk = two_hosts
    prepared_gang(desk)
    desk.decide("g", StopGang("prepare-failed", "host 1 has no space"))
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert (attempt.state, attempt.cause) == (AttemptState.ABORTING, "prepare-failed")
    assert [(job.stop_wanted, job.gen) for job in attempt.jobs] == [(True, 3)] * 2
    assert len(desk.ledger.read_book().allocations) == 2
    desk.decide("g", StopGang("another", ""))
    assert desk.ledger.read_book().attempts[desk.run("g").uid] == attempt


def test_stop_of_what_no_host_knows(desk: Desk) -> None:
    """Jobs that still wait end at once as never started, and need not be forgotten."""
    desk.submit(submit_step("a"))
    desk.decide("a", StopGang("stopped", "by bert"))
    book = desk.ledger.read_book()
    (job,) = book.attempts[desk.run("a").uid].jobs
    assert (job.state, job.cause, job.forgotten) == ((JobState.FINISHED, Cause.NEVER_STARTED, True))


def test_requeue_writes_the_next_attempt(desk: Desk) -> None:
    """The old attempt ends, the next waits with new jobs; what did not count is counted apart."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.PREPARE_FAILED, exit_code=None))
    desk.decide("a", Requeue(99_000, "prepare-failed", "no space", counted=False))
    run = desk.run("a")
    assert (run.attempt, run.not_before_ms, run.uncounted) == (2, 99_000, 1)
    assert run.state is RunState.PENDING
    (history,) = desk.ledger.read_runs(["a"])
    first, second = history.attempts
    assert (first.state, first.cause) == (AttemptState.FINISHED, "prepare-failed")
    assert second.state is AttemptState.WAITING
    assert first.jobs[0].uid != second.jobs[0].uid
    assert desk.ledger.read_book().lingering == first.jobs
    assert not desk.place("a")
    desk.now_ms = 99_000
    assert desk.place("a")


def test_an_attempt_that_runs_leaves_the_message_of_the_one_before_to_it(desk: Desk) -> None:
    """While it waits, a run says why it is retried; once it runs, only the earlier attempt does."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.PREPARE_FAILED, exit_code=None))
    desk.decide("a", Requeue(0, "prepare-failed", "no space", counted=False))
    assert (desk.run("a").cause, desk.run("a").message) == ("prepare-failed", "no space")
    desk.place("a")
    run = desk.run("a")
    assert (run.state, run.cause, run.message) == (RunState.PREPARING, "", "")
    (history,) = desk.ledger.read_runs(["a"])
    assert history.attempts[0].message == "no space"


def test_a_delay_ends_where_the_clock_was_set_back(desk: Desk) -> None:
    """The attempt that waits began later than it is now: nothing is left of its delay."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.LOST, exit_code=None))
    begun_ms = desk.now_ms = 5_000_000
    desk.decide("a", Requeue(begun_ms + 3000, "lost", "", counted=True))
    assert not desk.place("a")
    desk.now_ms = begun_ms - 3_600_000
    (delayed,) = queue_from_state(desk.ledger.read_book()).delayed_since.values()
    assert delayed == begun_ms
    assert desk.place("a")


def test_requeue_needs_proof_of_death(desk: Desk) -> None:
    """No second attempt is written while a job of the first may run."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.decide("a", Requeue(0, "node-failure", ""))
    assert desk.run("a").attempt == 1


def test_finished_run_with_a_job_that_may_run(desk: Desk) -> None:
    """The run is over, and its job keeps the units and is to be stopped until it is dead."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.finish("a", RunState.STOPPED, "given-up")
    book = desk.ledger.read_book()
    assert not book.runs
    (job,) = book.lingering
    assert job.stop_wanted
    assert len(book.allocations) == 1
    moved = desk.say(desk.record("a", JobState.FINISHED, cause=Cause.STOPPED))
    assert moved == (job.key,)
    assert not desk.ledger.read_book().allocations


def test_verdict_on_what_is_over_is_dropped(desk: Desk) -> None:
    """A final run stays as it ended."""
    desk.submit(submit_step("a"))
    uid = desk.run_to_end("a")
    before = desk.run("a")
    for verdict in (
        Finish(RunState.FAILED, "x", ""), Requeue(0, "x", ""), StopGang("x", ""), AllPrepared()
    ):  # fmt: skip
        desk.ledger.commit_transitions([(uid, verdict)], fence=desk.fence, now_ms=1)
    assert desk.run("a") == before
