"""What happens next to a run, over rows crossed on named axes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleetform.agents.protocol.states import Cause, JobState
from fleetform.lifecycle import advance
from fleetform.model.decision import AllPrepared, Finish, Requeue, StopGang, Wait
from fleetform.model.run import FINAL, AttemptState, Retry, RunState
from unit.lifecycle.rows import NOW, OK, attempt, ended, run

RUNNING = {"state": JobState.RUNNING}
PREPARED = {"state": JobState.PREPARED}
PREPARING = {"state": JobState.PREPARING}
STARTING = {"state": JobState.STARTING}
STOPPED = ended(Cause.STOPPED)
NEVER = ended(Cause.NEVER_STARTED)
ERRORS = Retry(on=frozenset({"error"}))


# -- the two phases -------------------------------------------------------------------------


def test_a_rank_whose_end_is_not_proven_ends_its_gang():
    """Nothing follows before the proof; alone, a run only waits for it."""
    unknown = {"state": JobState.UNKNOWN, "message": "it may still run"}
    told = advance(run(nodes=2), attempt(RUNNING, unknown), now_ms=NOW)
    assert told == StopGang("lost", "rank 1: it may still run")
    retry = Retry(on=frozenset({"node-failure"}))
    assert advance(run(retry), attempt(unknown), now_ms=NOW) == Wait()
    over = attempt(STOPPED, {**unknown, "stop_wanted": True}, state=AttemptState.STOPPING)
    assert advance(run(retry, nodes=2), over, now_ms=NOW) == Wait()


def test_all_prepared_passes_the_commit_point():
    """Only when every rank is prepared, and only before the commit point."""
    assert (
        advance(run(nodes=2), attempt(PREPARED, PREPARED, state=AttemptState.RESERVED), now_ms=NOW)
        == AllPrepared()
    )
    for jobs, state in (
        ((PREPARED, PREPARING), AttemptState.RESERVED),
        ((PREPARED, PREPARED), AttemptState.STARTING),
    ):
        assert advance(run(nodes=2), attempt(*jobs, state=state), now_ms=NOW) == Wait()


def test_a_rank_that_cannot_prepare_ends_the_gang_uncounted():
    """The others are told to stop; once all are over the run is placed anew, not retried."""
    failed = ended(Cause.PREPARE_FAILED, message="no space left")
    first = attempt(PREPARED, failed, state=AttemptState.RESERVED)
    message = "could not be prepared: no space left on rank 1"
    assert advance(run(nodes=2), first, now_ms=NOW) == StopGang("prepare_failed", message)
    over = attempt(NEVER, failed, state=AttemptState.ABORTING)
    verdict = advance(run(nodes=2), over, now_ms=NOW)
    assert isinstance(verdict, Requeue)
    assert (verdict.counted, verdict.message) == (False, message)


@pytest.mark.parametrize(("uncounted", "delay_s"), [(0, 0), (1, 1), (2, 2), (4, 8)])
def test_placing_anew_backs_off(uncounted: int, delay_s: int):
    """A fault that lasts does not keep hosts busy."""
    verdict = advance(run(uncounted=uncounted), attempt(NEVER, number=uncounted + 1), now_ms=NOW)
    assert isinstance(verdict, Requeue)
    assert verdict.not_before_ms >= NOW + delay_s * 1000


def test_a_run_that_is_refused_again_and_again_fails():
    """The sixth refusal is the last, and the reason is told."""
    verdict = advance(
        run(uncounted=5),
        attempt(ended(Cause.PREPARE_FAILED, message="no such directory"), number=6),
        now_ms=NOW,
    )
    assert verdict == Finish(
        RunState.FAILED,
        "prepare_failed",
        "could not be prepared: no such directory (gave up after 6 attempts)",
    )


def test_hosts_have_a_time_to_prepare():
    """A gang whose rank is late is given up; a ledger without the moment sets no deadline."""
    late = attempt(PREPARED, PREPARING, state=AttemptState.RESERVED, reserved_at_ms=NOW - 5000)
    assert advance(run(nodes=2), late, now_ms=NOW, prepare_timeout_ms=5001) == Wait()
    assert advance(run(nodes=2), late, now_ms=NOW, prepare_timeout_ms=5000) == StopGang(
        "prepare_timeout", "rank 1 not prepared within 5s"
    )
    assert advance(run(nodes=2), replace(late, reserved_at_ms=None), now_ms=NOW) == Wait()


def test_a_gang_that_misses_a_rank_is_stopped_whole():
    """Sixty seconds after the commit point nobody waits any longer."""
    missing = attempt(RUNNING, STARTING, starting_at_ms=NOW - 60_000)
    assert advance(run(nodes=2), missing, now_ms=NOW) == StopGang(
        "start_timeout", "rank 1 not started within 1m00s"
    )
    assert advance(run(nodes=2), missing, now_ms=NOW - 1) == Wait()
    alone = attempt(STARTING, starting_at_ms=NOW - 600_000)
    assert advance(run(), alone, now_ms=NOW) == Wait()


def test_nodes_that_start_after_others_have_twice_the_time():
    """Who is to start first is late after a minute, and the rest a minute later."""
    first = attempt(STARTING, STARTING, STARTING, starting_at_ms=NOW - 60_000)
    told = advance(run(nodes=3, startup_order="workers-first"), first, now_ms=NOW)
    assert told == StopGang("start_timeout", "ranks 1, 2 not started within 1m00s")
    row = run(nodes=3, startup_order="master-first")
    second = attempt(RUNNING, STARTING, RUNNING, starting_at_ms=NOW - 120_000)
    assert advance(row, second, now_ms=NOW - 1) == Wait()
    told = advance(row, second, now_ms=NOW)
    assert told == StopGang("start_timeout", "rank 1 not started within 2m00s")


# -- ends -----------------------------------------------------------------------------------


def test_a_run_that_its_master_has_done_stops_the_others():
    """Only with `master-done`, and only once node 0 has ended well."""
    row = run(nodes=2, stop_criteria="master-done")
    message = "rank 0 is done, and `stop_criteria` is master-done"
    assert advance(row, attempt(OK, RUNNING), now_ms=NOW) == StopGang("master_done", message)
    assert advance(run(nodes=2), attempt(OK, RUNNING), now_ms=NOW) == Wait()
    assert advance(row, attempt(RUNNING, OK), now_ms=NOW) == Wait()
    failed = ended(Cause.EXITED, 3)
    for jobs, rank in (((failed, RUNNING), 0), ((RUNNING, failed), 1)):
        told = advance(row, attempt(*jobs), now_ms=NOW)
        assert told == StopGang("exited", f"exit code 3 on rank {rank}")


@pytest.mark.parametrize("other", [STOPPED, NEVER, ended(Cause.EXITED, 1), ended(Cause.LOST)])
def test_the_end_of_the_master_is_that_of_the_run(other):
    """A worker that fails when its master has left does not make a failure of what is done."""
    row = run(ERRORS, nodes=2, stop_criteria="master-done")
    over = attempt(OK, other, state=AttemptState.STOPPING, cause="master_done")
    assert advance(row, over, now_ms=NOW) == Finish(RunState.DONE, "exited", "")
    failed = attempt(ended(Cause.EXITED, 3), STOPPED, state=AttemptState.STOPPING)
    assert isinstance(advance(row, failed, now_ms=NOW), Requeue)
    message = "exit code 3 on rank 0"
    told = advance(replace(row, template=replace(row.template, retry=None)), failed, now_ms=NOW)
    assert told == Finish(RunState.FAILED, "exited", message)


def test_all_that_exit_with_zero_are_done():
    """A rank that is ready earlier is waited for."""
    assert advance(run(nodes=2), attempt(OK, RUNNING), now_ms=NOW) == Wait()
    assert advance(run(nodes=2), attempt(OK, OK), now_ms=NOW) == Finish(RunState.DONE, "exited", "")


ENDS = [
    (ended(Cause.EXITED, 3), "failed", "exited", "exit code 3"),
    (ended(Cause.SIGNAL, signal=9), "failed", "signal", "killed by signal 9 (KILL)"),
    (
        ended(Cause.OOM, peak_memory_bytes=1288490189, memory_bytes=1 << 30),
        "failed",
        "oom",
        "out of memory: 1.2GB of 1GB",
    ),
    (
        ended(Cause.MAX_DURATION, 0),
        "failed",
        "max_duration",
        "ran longer than its max_duration of 1h00m",
    ),
    (
        ended(Cause.LOST, message="the host restarted"),
        "failed",
        "lost",
        "lost: the host restarted",
    ),
    (ended(Cause.STOPPED, 0), "stopped", "stopped", "stopped on its host"),
]


@pytest.mark.parametrize(("end", "state", "cause", "message"), ENDS)
def test_the_cause_decides_and_not_the_code(end, state, cause, message):
    """Each way to end has its state, cause and phrase; exit code 0 alone is not success."""
    verdict = advance(run(max_duration_seconds=3600), attempt(end), now_ms=NOW)
    assert verdict == Finish(state, cause, message)


@pytest.mark.parametrize("end", [one[0] for one in ENDS])
def test_one_bad_end_stops_the_rest(end):
    """A gang that has lost a rank would wait for it for ever."""
    verdict = advance(run(nodes=3), attempt(RUNNING, end, OK), now_ms=NOW)
    assert isinstance(verdict, StopGang)
    assert verdict.message.endswith("on rank 1")


def test_the_first_bad_end_explains_the_gang():
    """What happens to the others afterwards is a consequence."""
    jobs = (
        ended(Cause.STOPPED, finished_at_ms=NOW),
        ended(Cause.EXITED, 1, finished_at_ms=NOW - 10),
        ended(Cause.OOM, finished_at_ms=NOW - 20),
    )
    verdict = advance(run(nodes=3), attempt(*jobs), now_ms=NOW)
    assert isinstance(verdict, Finish)
    assert verdict.cause == "oom"


# -- stops ----------------------------------------------------------------------------------


@pytest.mark.parametrize("state", list(AttemptState))
def test_a_stop_request_stops_what_is_alive(state: AttemptState):
    """In any phase, and only until every job has been told."""
    asked = run(stop_requested="ada: wrong data")
    living = attempt(RUNNING, state=state)
    assert advance(asked, living, now_ms=NOW) == StopGang("stopped", "ada: wrong data")
    told = attempt({"stop_wanted": True}, state=state)
    assert advance(asked, told, now_ms=NOW) == Wait()


@pytest.mark.parametrize(
    ("end", "state"),
    [
        (STOPPED, RunState.STOPPED),
        (NEVER, RunState.STOPPED),
        (ended(Cause.PREPARE_FAILED), RunState.STOPPED),
        (ended(Cause.LOST), RunState.STOPPED),
        (OK, RunState.DONE),
        (ended(Cause.EXITED, 2), RunState.FAILED),
    ],
)
def test_a_stopped_run_is_never_tried_again(end, state):
    """How it ended counts: what was done before the stop reached it is done."""
    asked = run(Retry(on=frozenset({"error", "node-failure"})), stop_requested="ada")
    verdict = advance(asked, attempt(end), now_ms=NOW)
    assert isinstance(verdict, Finish)
    assert verdict.state == state


@pytest.mark.parametrize(
    ("asked", "cause"),
    [
        ("emergency stop of run/a by ada@node1: loss is nan", "emergency"),
        ("stopped by ada", "stopped"),
    ],
)
def test_an_end_by_an_override_is_told_from_one_by_the_tree(asked: str, cause: str):
    """People and retry rules read the cause; who and why is in the message."""
    verdict = advance(run(stop_requested=asked), attempt(STOPPED), now_ms=NOW)
    assert verdict == Finish(RunState.STOPPED, cause, asked)


def test_a_document_that_says_stopped_ends_a_run_also_before_it_starts():
    """`state: stopped` ends a run that has started, and one that waits: both are `stopped`."""
    stopped = run(wanted="stopped")
    assert isinstance(advance(stopped, attempt(RUNNING), now_ms=NOW), StopGang)
    waiting = attempt({"state": JobState.WAITING}, state=AttemptState.WAITING)
    assert isinstance(advance(stopped, waiting, now_ms=NOW), StopGang)
    ended = attempt(NEVER, state=AttemptState.ABORTING)
    sentence = "its document says `state: stopped`"
    assert advance(stopped, ended, now_ms=NOW) == Finish(RunState.STOPPED, "stopped", sentence)


def test_silence_is_waited_out():
    """Told to stop and not heard of since: no second attempt without proof."""
    silent = attempt(ended(Cause.LOST), {"stop_wanted": True}, state=AttemptState.STOPPING)
    retried = run(Retry(on=frozenset({"node-failure"})), nodes=2, state=RunState.UNKNOWN)
    assert advance(retried, silent, now_ms=NOW + 10**9) == Wait()


# -- retries --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "events"),
    [
        (ended(Cause.EXITED, 3), {"error"}),
        (ended(Cause.SIGNAL, signal=11), {"error"}),
        (ended(Cause.OOM), {"error"}),
        (ended(Cause.MAX_DURATION), {"time-limit"}),
        (ended(Cause.LOST), {"node-failure", "interruption"}),
    ],
)
@pytest.mark.parametrize(
    "on", ["error", "time-limit", "node-failure", "interruption", "preemption", "no-capacity"]
)
def test_each_end_is_retried_for_its_events_only(end, events, on):
    """The table of causes against `retry.on`."""
    verdict = advance(run(Retry(on=frozenset({on}))), attempt(end), now_ms=NOW)
    assert isinstance(verdict, Requeue if on in events else Finish)


def test_requeue_exit_codes_need_no_event():
    """A code that asks to be run again is obeyed; another is not."""
    retry = Retry(on=frozenset(), requeue_exit_codes=frozenset({75}))
    assert isinstance(advance(run(retry), attempt(ended(Cause.EXITED, 75)), now_ms=NOW), Requeue)
    assert isinstance(advance(run(retry), attempt(ended(Cause.EXITED, 74)), now_ms=NOW), Finish)


def test_the_window_counts_from_submission():
    """No attempt begins after it."""
    retry = Retry(on=frozenset({"error"}), window_seconds=60, delay_seconds=10)
    bad = attempt(ended(Cause.EXITED, 1))
    for since, expected in ((49, Requeue), (50, Finish), (3600, Finish)):
        row = run(retry, submitted_at_ms=NOW - since * 1000)
        assert isinstance(advance(row, bad, now_ms=NOW), expected)


@pytest.mark.parametrize(
    ("delay", "number", "expected_s"),
    [(0, 1, 0), (0, 2, 1), (0, 5, 8), (10, 1, 10), (10, 3, 40), (10, 50, 600), (3600, 9, 3600)],
)
def test_delays_double_up_to_ten_minutes(delay: int, number: int, expected_s: int):
    """And are never shorter than asked for."""
    retry = Retry(on=frozenset({"error"}), delay_seconds=delay)
    verdict = advance(run(retry), attempt(ended(Cause.EXITED, 1), number=number), now_ms=NOW)
    assert isinstance(verdict, Requeue)
    assert verdict.not_before_ms == NOW + expected_s * 1000


CAUSES = st.sampled_from(
    [
        OK,
        STOPPED,
        NEVER,
        ended(Cause.EXITED, 1),
        ended(Cause.LOST),
        ended(Cause.OOM),
        ended(Cause.PREPARE_FAILED),
    ]
)


@given(
    st.integers(1, 4), st.lists(st.lists(CAUSES, min_size=2, max_size=2), min_size=20, max_size=20)
)
def test_attempts_that_ran_never_exceed_the_limit(limit, fates):
    """Whatever happens to each attempt, in any order."""
    retry = Retry(on=frozenset({"error", "node-failure"}), max_attempts=limit)
    row = run(retry, nodes=2)
    ran = 0
    for number, jobs in enumerate(fates, 1):
        one = attempt(*jobs, number=number)
        ran += any(job.cause not in {Cause.NEVER_STARTED, Cause.PREPARE_FAILED} for job in one.jobs)
        verdict = advance(row, one, now_ms=NOW)
        if isinstance(verdict, Finish):
            break
        assert isinstance(verdict, Requeue)
        row = replace(row, uncounted=row.uncounted + (not verdict.counted))
    assert ran <= limit


JOBS = st.fixed_dictionaries(
    {"state": st.sampled_from(list(JobState)), "stop_wanted": st.booleans()},
    optional={"started_at_ms": st.just(NOW)},
).map(lambda one: {**one, **(OK if one["state"] is JobState.FINISHED else {})})


@given(
    st.lists(st.one_of(JOBS, CAUSES), min_size=1, max_size=3),
    st.sampled_from(list(AttemptState)),
    st.sampled_from(list(RunState)),
    st.sampled_from(["", "ada"]),
)
def test_no_verdict_ends_a_run_whose_job_may_be_alive(jobs, state, run_state, stop):
    """Finish and Requeue only when all rows say so; a final run is left alone."""
    row = run(nodes=len(jobs), state=run_state, stop_requested=stop)
    verdict = advance(row, attempt(*jobs, state=state), now_ms=NOW)
    if isinstance(verdict, Finish | Requeue):
        assert all(one["state"] is JobState.FINISHED for one in jobs)
    if isinstance(verdict, StopGang):
        assert any(
            one["state"] is not JobState.FINISHED and not one.get("stop_wanted") for one in jobs
        )
    if run_state in FINAL:
        assert verdict == Wait()
