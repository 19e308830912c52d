"""Records: what hosts say of jobs is taken in order, once, and of their own jobs only."""

from __future__ import annotations

import pytest

from contract.ledgers import SUBMITTED_MS, Desk, submit_step
from fleetform.agents.protocol.messages import Cursor, JobRecord
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.model.ports import HostNews
from fleetform.model.run import AttemptState, RunState


def test_job_is_followed_to_its_end(desk: Desk) -> None:
    """What the host says moves job, attempt and run; the end gives back the units."""
    desk.submit(submit_step("a"))
    desk.place("a")
    moved = desk.say(desk.record("a", JobState.RUNNING))
    run = desk.run("a")
    assert (run.state, run.started_at_ms) == (RunState.RUNNING, 9_500)
    assert moved[0].run_uid == run.uid
    assert desk.ledger.read_book().outcomes["a"].started
    desk.say(desk.record("a", JobState.CLEANING))
    assert desk.run("a").state is RunState.FINISHING
    desk.say(desk.record("a", JobState.FINISHED, exit_code=3, log_bytes=7, cpu_time_ms=5))
    book = desk.ledger.read_book()
    (job,) = book.attempts[run.uid].jobs
    assert (job.cause, job.exit_code, job.log_bytes, job.cpu_time_ms) == (Cause.EXITED, 3, 7, 5)
    assert not book.allocations
    desk.finish("a", RunState.FAILED)
    assert desk.ledger.read_book().lingering == (job,)
    desk.ledger.mark_forgotten([job.key])
    assert not desk.ledger.read_book().lingering


def test_a_job_whose_end_is_not_proven_is_unknown(desk: Desk) -> None:
    """Its run says why and keeps its units, until the host has the proof."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING))
    desk.say(desk.record("a", JobState.UNKNOWN, message="other processes may belong to the job"))
    run = desk.run("a")
    assert (run.state, run.message) == (RunState.UNKNOWN, "other processes may belong to the job")
    assert desk.say(desk.record("a", JobState.CLEANING)) == ()
    assert desk.ledger.read_book().allocations
    desk.say(desk.record("a", JobState.FINISHED, cause=Cause.LOST, exit_code=None))
    assert not desk.ledger.read_book().allocations


def test_records_only_move_forward(desk: Desk) -> None:
    """Late and doubled records change nothing, within a batch and between batches."""
    desk.submit(submit_step("a"))
    desk.place("a")
    running, done = desk.record("a", JobState.RUNNING), desk.record("a", JobState.FINISHED)
    assert len(desk.say(done, running, running)) == 1
    before = desk.ledger.read_live().serial
    assert desk.say(running, done) == ()
    assert desk.ledger.read_live().serial == before


def test_news_of_many_hosts_are_recorded_together(two_hosts: Desk) -> None:
    """Each is for a job of its own host, and they cost one commit."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"))
    desk.place_all(("a", [desk.share()]), ("b", [desk.share(on=1)]))
    a, b = desk.record("a", JobState.RUNNING), desk.record("b", JobState.RUNNING)
    before = desk.ledger.read_live().serial
    first, second = desk.instances
    wrong = [HostNews(second, [a]), HostNews(first, [b])]
    assert desk.ledger.commit_news(wrong, fence=desk.fence, now_ms=desk.now_ms) == ()
    right = [HostNews(first, [a]), HostNews(second, [b]), HostNews(first, [a])]
    moved = desk.ledger.commit_news(right, fence=desk.fence, now_ms=desk.now_ms)
    assert moved == (a.key, b.key)
    assert desk.ledger.read_live().serial == before + 1
    assert desk.run("a").state is desk.run("b").state is RunState.RUNNING


def test_ends_of_many_hosts_free_their_units_and_move_their_cursors(two_hosts: Desk) -> None:
    """Each job takes the furthest of what its host says, and each host keeps its own cursor."""
    desk = two_hosts
    desk.submit(submit_step("a"), submit_step("b"), submit_step("c"))
    desk.place_all(("a", [desk.share()]), ("b", [desk.share(on=1)]), ("c", [desk.share()]))
    first, second = desk.instances
    a, b = (desk.record(name, JobState.FINISHED, exit_code=0) for name in "ab")
    running = [desk.record(name, JobState.RUNNING) for name in "ac"]
    news = [
        HostNews(first, running, Cursor("one", 4)),
        HostNews(second, [b], Cursor("two", 9)),
        HostNews(first, [a], Cursor("one", 5)),
    ]
    moved = desk.ledger.commit_news(news, fence=desk.fence, now_ms=desk.now_ms)
    assert moved == (a.key, running[1].key, b.key)
    book = desk.ledger.read_book()
    assert [one.cursor for one in book.instances] == [Cursor("one", 5), Cursor("two", 9)]
    assert [one.run_uid for one in book.allocations] == [running[1].key.run_uid]


def test_a_lost_job_began_when_it_was_first_heard_of(desk: Desk) -> None:
    """Its agent was killed too, and knows no more than when it looked again."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING, started_at_ms=2_000))
    lost = {"cause": Cause.LOST, "exit_code": None, "started_at_ms": 9_400}
    desk.say(desk.record("a", JobState.FINISHED, **lost))
    (job,) = desk.ledger.read_book().attempts[desk.run("a").uid].jobs
    assert (job.cause, job.started_at_ms, job.finished_at_ms) == (Cause.LOST, 2_000, 10_000)


def test_a_lost_job_of_which_nothing_was_heard_began_when_its_host_says(desk: Desk) -> None:
    """It is the best that anybody knows."""
    desk.submit(submit_step("a"))
    desk.place("a")
    lost = {"cause": Cause.LOST, "exit_code": None, "started_at_ms": 9_400}
    desk.say(desk.record("a", JobState.FINISHED, **lost))
    (job,) = desk.ledger.read_book().attempts[desk.run("a").uid].jobs
    assert job.started_at_ms == 9_400


@pytest.mark.parametrize(
    ("began", "ended"),
    [(9_000_000, 9_000_500), (-9_000_000, -8_999_500), (9_400, 10_100), (800, 1_300), (2_000, 2_500)],
)  # fmt: skip
def test_a_wrong_clock_of_a_host_moves_no_time(desk: Desk, began: int, ended: int) -> None:
    """A job began after its submission, ended before now, and took as long as its host says."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING, started_at_ms=began))
    first = desk.run("a").started_at_ms
    desk.say(desk.record("a", JobState.FINISHED, started_at_ms=began, finished_at_ms=ended))
    (job,) = desk.ledger.read_book().attempts[desk.run("a").uid].jobs
    assert job.started_at_ms is not None
    assert job.finished_at_ms == job.started_at_ms + ended - began
    assert SUBMITTED_MS <= job.started_at_ms < job.finished_at_ms <= desk.now_ms
    assert first is not None
    assert SUBMITTED_MS <= first <= desk.now_ms


@pytest.mark.parametrize("ended", [-9_000_000, 9_000_000])
def test_a_lost_job_ends_between_its_start_and_now(desk: Desk, ended: int) -> None:
    """Also where the clock of its host has been set since it began."""
    desk.submit(submit_step("a"))
    desk.place("a")
    desk.say(desk.record("a", JobState.RUNNING, started_at_ms=2_000))
    lost = {"cause": Cause.LOST, "exit_code": None, "started_at_ms": ended}
    desk.say(desk.record("a", JobState.FINISHED, finished_at_ms=ended, **lost))
    (job,) = desk.ledger.read_book().attempts[desk.run("a").uid].jobs
    assert job.started_at_ms == 2_000
    assert job.finished_at_ms == (2_000 if ended < 0 else desk.now_ms)


def test_foreign_records_are_not_taken(two_hosts: Desk) -> None:
    """A record without a row, with another uid, or from another host moves nothing."""
    desk = two_hosts
    desk.submit(submit_step("a"))
    desk.place("a")
    own = desk.record("a", JobState.FINISHED)
    other_uid = JobRecord(own.key, "f" * 32, 9, "", JobState.FINISHED, Cause.EXITED, 0)
    unknown = JobRecord(own.key._replace(run_uid="f" * 32), own.job_uid, 9, "", JobState.RUNNING)
    assert desk.say(other_uid, unknown) == ()
    assert desk.say(own, on=1) == ()


def test_host_ahead_of_the_ledger(two_hosts: Desk) -> None:
    """A gang that runs although the ledger only reserved it is taken as it is."""
    desk = two_hosts
    desk.submit(submit_step("g", nodes=2))
    desk.place("g", desk.share(0), desk.share(1, on=1))
    record = desk.record("g", JobState.RUNNING)
    ahead = JobRecord(record.key, record.job_uid, 7, "", JobState.RUNNING, started_at_ms=5)
    desk.say(ahead)
    attempt = desk.ledger.read_book().attempts[desk.run("g").uid]
    assert attempt.state is AttemptState.STARTING
    assert attempt.jobs[0].gen == 7


def test_cursor_and_rows_change_together(desk: Desk) -> None:
    """The cursor moves forward within a log; a snapshot sets it whatever it was."""

    def commit(cursor: Cursor, *, snapshot: bool = False) -> Cursor | None:
        desk.ledger.commit_records(
            desk.instances[0], (), cursor, snapshot=snapshot, fence=desk.fence, now_ms=1
        )
        return desk.ledger.read_book().instances[0].cursor

    assert commit(Cursor("a", 5)) == Cursor("a", 5)
    assert commit(Cursor("a", 3)) == Cursor("a", 5)
    assert commit(Cursor("a", 3), snapshot=True) == Cursor("a", 3)
    assert commit(Cursor("b", 1)) == Cursor("b", 1)
