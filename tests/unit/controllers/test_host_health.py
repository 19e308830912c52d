from __future__ import annotations

from typing import Any

from fleetform.agents.protocol.keys import JobKey
from fleetform.agents.protocol.states import Cause, JobState
from fleetform.controllers.host_health import SUSPECT_MS, WINDOW_MS, HostHealth
from fleetform.model.run import (
    Attempt,
    AttemptState,
    Job,
    Run,
    RunState,
    RunUid,
    Template,
)

NOW = 1_000_000


def fail(
    suspicion: HostHealth,
    name: str,
    on: str = "a",
    *,
    cause: Cause = Cause.PREPARE_FAILED,
    now_ms: int = NOW,
    reserved_at_ms: int = NOW - 10,
    parent: str = "",
) -> tuple[str, ...]:
    """Let an attempt of the run end so on that host."""
    uid = RunUid(name)
    template = Template(name=name, type="task", commands=("true",), parent=parent)
    run = Run(uid, name, template, RunState.PREPARING, 1, 1)
    job = Job(f"job-{name}", JobKey(uid, 1, 0), JobState.FINISHED, 3, instance_uid=on, cause=cause)
    attempt = Attempt(uid, 1, AttemptState.RESERVED, (job,), reserved_at_ms=reserved_at_ms)
    return suspicion.note(run, attempt, now_ms=now_ms)


def judge(suspicion: HostHealth, *others: str, **when: Any) -> str:
    return suspicion.judge("a", ("a", *others), **{"now_ms": NOW, **when})


def test_three_runs_within_a_minute_make_a_host_suspect() -> None:
    """It is said once, with figures, at the third run and not before."""
    suspicion = HostHealth()
    fail(suspicion, "one")
    fail(suspicion, "two", cause=Cause.LOST)
    assert not judge(suspicion)
    assert fail(suspicion, "three") == ("a",)
    assert judge(suspicion).startswith("3 runs failed here within a minute")
    assert not judge(suspicion)


def suspect_again(suspicion: HostHealth, number: int) -> str:
    """Let three more runs fail on the host, five minutes after those before."""
    now_ms = NOW + number * SUSPECT_MS
    suspicion.take_pardoned(now_ms=now_ms)
    for one in range(3):
        fail(suspicion, f"run-{number}-{one}", now_ms=now_ms, reserved_at_ms=now_ms - 10)
    assert judge(suspicion, now_ms=now_ms)
    return suspicion.take_broken("a")


def test_a_host_that_is_suspect_three_times_in_a_row_is_broken() -> None:
    """A hello does not change that; after the quarantine the count begins at 0."""
    suspicion = HostHealth()
    assert not suspect_again(suspicion, 0)
    suspicion.greeted("a", now_ms=NOW)
    assert not suspect_again(suspicion, 1)
    assert suspect_again(suspicion, 2) == ("3 times in a row, 3 runs failed here within a minute")
    assert not suspicion.take_broken("a")
    assert not suspect_again(suspicion, 3)


def test_a_run_that_comes_to_its_own_end_shows_that_the_host_works() -> None:
    """With whatever exit code: what fails there afterwards is counted from one."""
    suspicion = HostHealth()
    suspect_again(suspicion, 0)
    suspect_again(suspicion, 1)
    fail(suspicion, "works", cause=Cause.EXITED)
    assert not suspect_again(suspicion, 2)


def test_one_run_again_and_again_is_the_run_s_matter() -> None:
    """Tries of one run count once."""
    suspicion = HostHealth()
    for _ in range(6):
        fail(suspicion, "one")
    assert not judge(suspicion)


def test_failures_apart_are_forgotten() -> None:
    """Three failures that a minute does not hold prove nothing."""
    suspicion = HostHealth()
    for number in range(3):
        fail(suspicion, f"run-{number}", now_ms=NOW + number * WINDOW_MS // 2)
    assert not judge(suspicion, now_ms=NOW + WINDOW_MS)


def test_a_run_s_own_end_blames_nobody() -> None:
    """Exit codes, limits and stops are not the host's doing."""
    suspicion = HostHealth()
    for number, cause in enumerate((Cause.EXITED, Cause.OOM, Cause.STOPPED, Cause.NEVER_STARTED)):
        assert fail(suspicion, f"run-{number}", cause=cause) == ()
    assert not judge(suspicion)


def test_a_greeting_clears() -> None:
    """What was placed before the host's last hello, as before its reboot, does not count."""
    suspicion = HostHealth()
    for name in ("one", "two"):
        fail(suspicion, name)
    suspicion.greeted("a", now_ms=NOW)
    for name in ("three", "four", "five"):
        assert fail(suspicion, name, reserved_at_ms=NOW - 1) == ()
    assert not judge(suspicion)


def test_a_mistake_in_a_sweep_does_not_close_its_only_host() -> None:
    """Elements of one sweep count as one where no other host could take them."""
    suspicion = HostHealth()
    for number in range(5):
        fail(suspicion, f"sweep[{number}]", parent="sweep")
    assert not judge(suspicion)
    fail(suspicion, "sweep[6]", "b", parent="sweep")
    assert not judge(suspicion, "b")
    assert judge(suspicion, "b", "c")


def test_a_suspect_is_tried_again() -> None:
    """After five minutes its time is over, and it begins with a clean record."""
    suspicion = HostHealth()
    for name in ("one", "two", "three"):
        fail(suspicion, name)
    assert judge(suspicion)
    assert suspicion.take_pardoned(now_ms=NOW + SUSPECT_MS - 1) == ()
    assert suspicion.take_pardoned(now_ms=NOW + SUSPECT_MS) == ("a",)
    assert suspicion.take_pardoned(now_ms=NOW + SUSPECT_MS) == ()
    assert not judge(suspicion, now_ms=NOW + SUSPECT_MS)
