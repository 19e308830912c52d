"""Rows of `ps`, and why a run is where it is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fleetform.agents.protocol.states import JobState
from fleetform.model.decision import Waiting
from fleetform.model.instance import InstanceState
from fleetform.model.run import Attempt, AttemptState, RunState, RunUid
from fleetform.views.json_value import to_json
from fleetform.views.run_list import list_runs
from fleetform.views.runs import (
    TONES,
    in_order,
    run_detail,
    run_rows,
    runs_table,
)
from fleetform.views.table import plain_lines
from fleetform.views.why import explain, why_lines
from unit.views.rows import NOW, exited, history, instance, job


def test_a_row_says_where_a_run_is():
    """Hosts by name, what it asks for in words, and how long it has been running."""
    (row,) = run_rows([history()], instances=[instance()], now_ms=NOW)
    assert (row.state, row.instances, row.duration_ms) == ("running", ("local-0",), 60_000)
    assert row.resources == "4 CPUs, 16GB, 2 GPUs A100 80GB"


def test_a_host_that_is_gone_keeps_its_name():
    """A run that ended on a host that was released says where, by name."""
    over = replace(history(state=RunState.DONE), host_names={"i0": "local-7"})
    assert run_rows([over], instances=[instance(1)], now_ms=NOW)[0].instances == ("local-7",)
    assert run_detail(over, now_ms=NOW).attempts[0].jobs[0].instance == "local-7"


def test_a_table_of_runs():
    """Columns that say nothing are left out."""
    rows = run_rows([history()], instances=[instance()], now_ms=NOW)
    assert plain_lines(runs_table(rows, now_ms=NOW)) == (
        "NAME   STATE      AGE  DURATION  RESOURCES                       HOSTS",
        "train  running  1m30s     1m00s  4 CPUs, 16GB, 2 GPUs A100 80GB  local-0",
    )


def test_rows_are_json():
    """Every value of a row can be written as it is."""
    detail = run_detail(history(), now_ms=NOW, waiting=(Waiting("resources", "x"),))
    assert json.loads(json.dumps(to_json(detail)))["row"]["waiting"] == [
        {"code": "resources", "detail": "x"}
    ]


@pytest.mark.parametrize(("codes", "expected"), [((0, 0), 0), ((0, 3), 3), ((7, 3), 7)])
def test_the_exit_code_is_of_the_job_that_decided(codes, expected):
    """The first that is not 0; none while the run goes on."""
    jobs = tuple(exited(rank, code) for rank, code in enumerate(codes))
    over = history(state=RunState.FAILED, jobs=jobs, cause="exited")
    assert run_rows([over], now_ms=NOW)[0].exit_code == expected
    assert run_rows([history(jobs=jobs)], now_ms=NOW)[0].exit_code is None


def test_waiting_runs_share_their_reasons():
    """Ten thousand that wait for the same make one tuple of rows."""
    reasons = (Waiting("resources", "needs 8 CPUs"), Waiting("gang", "needs 2"))
    many = [history(f"r{n}", RunState.SUBMITTED) for n in range(3)]
    waiting = {RunUid(f"uid-r{n}"): reasons for n in range(3)}
    rows = run_rows(many, waiting=waiting, now_ms=NOW)
    assert len({id(row.waiting) for row in rows}) == 1
    assert "needs 8 CPUs (and 1 more reason)" in plain_lines(runs_table(rows, now_ms=NOW))[1]


def test_every_state_has_a_tone():
    """A new state needs one."""
    assert set(TONES) == set(RunState)


def test_why_a_run_waits():
    """All reasons, and what can be done about each kind."""
    waiting = (
        Waiting("dependency", "waits for prep to succeed; it is running"),
        Waiting("dependency", "waits for data to succeed; it is running"),
        Waiting("priority", "local-0 is kept free for big (priority 9), which is ahead"),
    )
    row = history(state=RunState.PENDING, started_at_ms=None)
    answer = explain(run_detail(row, waiting=waiting, now_ms=NOW), now_ms=NOW)
    lines = why_lines(answer)
    assert lines[0] == "train is pending and has waited for 1m30s, for 3 reasons:"
    assert len(answer.reasons) == 3
    assert len(answer.advice) == 2


@pytest.mark.parametrize(
    ("state", "more", "expected"),
    [
        (RunState.RUNNING, {}, "train has been running for 1m00s on local-0."),
        (
            RunState.FAILED,
            {"message": "exit code 3", "finished_at_ms": NOW - 50_000},
            "train is failed: exit code 3.",
        ),
        (RunState.SUBMITTED, {}, "train is submitted; nothing blocks it."),
    ],
)
def test_why_in_one_sentence(state, more, expected):
    """Running, over, or about to start."""
    detail = run_detail(history(state=state, **more), instances=[instance()], now_ms=NOW)
    assert explain(detail, now_ms=NOW).summary == expected


def test_an_end_that_cannot_be_proven_says_what_to_do():
    """Which processes, on which host, and that its agent finds the rest by itself."""
    message = "other processes may belong to the job (pid 5)"
    jobs = (replace(job(message=message), state=JobState.UNKNOWN),)
    row = history(state=RunState.UNKNOWN, message="exit code 1", jobs=jobs)
    answer = explain(run_detail(row, instances=[instance()], now_ms=NOW), now_ms=NOW)
    assert answer.summary.startswith(f"train is unknown: {message}. It is not started again")
    (advice,) = answer.advice
    assert "these processes on local-0" in advice
    assert "restart the host" in advice


def test_an_unreachable_host_says_why_nothing_is_decided():
    """Which host, since when, why, and what to do where it never returns."""
    row = history(state=RunState.UNKNOWN, jobs=(job(),))
    far = replace(
        instance(),
        state=InstanceState.UNREACHABLE,
        message="10.0.0.1 port 22 does not answer in time",
        seen_at_ms=NOW - 66_000,
        provider="ssh",
    )
    detail = run_detail(row, instances=[far], now_ms=NOW)
    answer = explain(detail, instances=[far], now_ms=NOW)
    assert answer.summary == (
        "train is unknown: host local-0 is unreachable, last heard 1m06s ago (10.0.0.1 port 22"
        " does not answer in time). It is not started again while its job may still run there."
    )
    (advice,) = answer.advice
    assert (
        advice
        == "if local-0 never returns, set `lost: REASON` at this host in fleet local and apply"
    )


def test_a_silent_host_that_left_the_configuration_comes_back_as_lost():
    """Its entry is gone, and the person's word needs one."""
    row = history(state=RunState.UNKNOWN, jobs=(job(),))
    gone = replace(
        instance(),
        state=InstanceState.TERMINATING,
        message="the connection was lost",
        provider="ssh",
        install_id="i",
    )
    detail = run_detail(row, instances=[gone], now_ms=NOW)
    answer = explain(detail, instances=[gone], now_ms=NOW)
    assert "host local-0 is leaving and silent (the connection was lost)" in answer.summary
    assert answer.advice == (
        "if local-0 never returns, declare it in fleet local again, with `lost: REASON`, and apply",
    )


def test_a_second_attempt_runs_since_it_began():
    """Not since the first one did."""
    row = history(state=RunState.RUNNING)
    first = replace(row.attempts[0], finished_at_ms=NOW - 30_000, message="lost")
    again = replace(row.attempts[0], number=2, started_at_ms=NOW - 5_000)
    detail = run_detail(replace(row, attempts=(first, again)), instances=[instance()], now_ms=NOW)
    assert explain(detail, now_ms=NOW).summary == "train has been running for 5s on local-0."


def test_earlier_attempts_are_told():
    """A retried run says how each try went."""
    row = history()
    first = replace(row.attempts[0], finished_at_ms=NOW, message="exit code 1")
    again = replace(row.attempts[0], number=2, jobs=(job(),))
    detail = run_detail(replace(row, attempts=(first, again)), now_ms=NOW)
    assert "  attempt 1: exit code 1" in why_lines(explain(detail, now_ms=NOW))


def test_an_end_says_how_where_and_how_long():
    """One try is told in the summary, and a failure with what can be done about it."""
    times = {"started_at_ms": NOW - 60_000, "finished_at_ms": NOW, "log_bytes": 9}
    jobs = (replace(exited(0, 3), **times),)
    over = history(state=RunState.FAILED, jobs=jobs, message="exit code 3", finished_at_ms=NOW)
    lines = why_lines(explain(run_detail(over, instances=[instance()], now_ms=NOW), now_ms=NOW))
    assert lines[0] == "train is failed: exit code 3 after 1m00s on local-0."
    assert [line.partition("`")[2].partition("`")[0] for line in lines[1:]] == [
        "fleetform logs train",
        "fleetform rerun train",
    ]


def test_who_asked_for_the_end_is_told():
    """A run that is to end says so, and no longer what it waited for."""
    asked = history(state=RunState.PENDING)
    asked = replace(asked, run=replace(asked.run, stop_requested="stopped by ann"))
    detail = run_detail(asked, waiting=(Waiting("dependency", "x"),), now_ms=NOW)
    answer = explain(detail, now_ms=NOW)
    assert answer.summary == "train is pending and is asked to stop: stopped by ann."
    assert answer.reasons == ()


def test_a_duration_is_by_the_clocks_of_the_hosts():
    """The ledger may hear of an end much later; the job did not run longer for that."""
    jobs = (replace(job(), started_at_ms=NOW - 60_000, finished_at_ms=NOW - 58_000),)
    over = history(state=RunState.DONE, jobs=jobs, finished_at_ms=NOW)
    assert run_rows([over], now_ms=NOW)[0].duration_ms == 2_000


def test_the_wait_for_the_next_attempt_is_no_work():
    """The duration stands still meanwhile, and counts on from the start of the next attempt."""
    jobs = (replace(job(), started_at_ms=NOW - 60_000, finished_at_ms=NOW - 58_000),)
    begun = history(state=RunState.PENDING, jobs=jobs)
    (first,) = begun.attempts
    waiting = Attempt(first.run_uid, 2, AttemptState.WAITING, (), NOW - 58_000)
    paused = replace(begun, attempts=(first, waiting))
    assert run_rows([paused], now_ms=NOW)[0].duration_ms == 2_000
    prepares = replace(waiting, state=AttemptState.RUNNING)
    again = replace(begun, attempts=(first, prepares))
    assert run_rows([again], now_ms=NOW)[0].duration_ms == 2_000
    second = replace(jobs[0], started_at_ms=NOW - 10_000, finished_at_ms=None)
    running = replace(prepares, jobs=(second,))
    (row,) = run_rows([replace(begun, attempts=(first, running))], now_ms=NOW)
    assert (row.duration_ms, row.pauses_ms) == (12_000, 48_000)
    (whole,) = list_runs([replace(row, parent="train", element="1")]).rows
    assert whole.duration_ms == 60_000


def test_an_attempt_that_never_began_is_part_of_the_pause():
    """Its host was lost before the job started, say."""
    times = [(NOW - 60_000, NOW - 50_000), (None, NOW - 40_000), (NOW - 30_000, NOW - 10_000)]
    over = history(state=RunState.DONE, finished_at_ms=NOW)
    attempts = tuple(
        replace(
            over.attempts[0], number=number,
            jobs=(replace(job(), started_at_ms=began, finished_at_ms=ended),),
        )
        for number, (began, ended) in enumerate(times, start=1)
    )  # fmt: skip
    (row,) = run_rows([replace(over, attempts=attempts)], now_ms=NOW)
    assert (row.duration_ms, row.pauses_ms) == (30_000, 20_000)


def test_a_duration_ends_when_a_silent_host_was_heard_last():
    """How long the job has run since is unknown; while another host answers, the run goes on."""
    heard = instance(state=InstanceState.UNREACHABLE, seen_at_ms=NOW - 40_000)
    (row,) = run_rows([history()], instances=[heard], now_ms=NOW)
    assert (row.duration_ms, row.silent_since_ms) == (20_000, NOW - 40_000)
    assert row.message == "its host has been silent for 40s"
    assert " 20s? " in plain_lines(runs_table([row], now_ms=NOW))[1]
    assert run_detail(history(), instances=[heard], now_ms=NOW).row == row
    gang = history(jobs=(job(0), job(1)))
    (both,) = run_rows([gang], instances=[heard, instance(1)], now_ms=NOW)
    assert (both.duration_ms, both.silent_since_ms) == (60_000, None)
    later = instance(1, state=InstanceState.UNREACHABLE, seen_at_ms=NOW - 30_000)
    (neither,) = run_rows([gang], instances=[heard, later], now_ms=NOW)
    assert (neither.duration_ms, neither.silent_since_ms) == (30_000, NOW - 30_000)
    over = history(state=RunState.DONE, finished_at_ms=NOW - 10_000)
    assert run_rows([over], instances=[heard], now_ms=NOW)[0].silent_since_ms is None


def test_elements_are_in_the_order_of_their_numbers():
    """`a[2]` before `a[10]` and 0.05 before 0.1; what is archived comes last."""
    names = ["b", "a[10]", "a[lr=0.1]", "a[2]", "a[lr=0.05]"]
    many = [replace(history("0"), archived=True), *map(history, names)]
    assert [one.run.name for one in in_order(many)] == [
        "a[2]", "a[10]", "a[lr=0.05]", "a[lr=0.1]", "b", "0"
    ]  # fmt: skip
