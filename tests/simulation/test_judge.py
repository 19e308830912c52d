"""The judge sees what it is for: each test breaks one rule of the product and expects a verdict."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import pytest

from fleetform.agents.host import recovery
from fleetform.controllers import sending
from fleetform.lifecycle import Due
from simulation import host, judge
from simulation.seeds import play_seed

SEEDS = range(200)
"""One seed in 70 meets the rarest of these; a test ends at the first one that does."""


def first_violation() -> str:
    """Play seeds until one breaks a promise; empty when none does."""
    for seed in SEEDS:
        verdict = play_seed(seed)
        if verdict.violations:
            return verdict.violations[0]
    return ""


def test_a_second_supervisor_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that starts what was started already is caught, once an agent asks for it again."""
    real = recovery._resume

    def start_anything(known, entry, seen, boot_id, now_ms):
        if seen.condition is recovery.Condition.ABANDONED:
            seen = dataclasses.replace(seen, condition=recovery.Condition.PREPARED)
        return real(known, entry, seen, boot_id, now_ms)

    def start_again(self, job_uid):
        directory = self.directories.get(job_uid)
        if directory is not None and not directory.held:
            directory.started = False
        return forked(self, job_uid)

    forked: Callable[..., bool] = host.Host.start_supervisor
    monkeypatch.setattr(recovery, "_resume", start_anything)
    monkeypatch.setattr(host.Host, "start_supervisor", start_again)
    assert "was started 2 times" in first_violation()


def test_a_gang_that_does_not_wait_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that is told to go with its preparation, before the others are prepared, is caught."""
    real = sending.job_request

    def hasty(*arguments):
        return dataclasses.replace(real(*arguments), go=True)

    monkeypatch.setattr(sending, "job_request", hasty)
    assert "was never prepared" in first_violation()


def test_a_lost_message_that_is_not_sent_again_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager that sends each message once and never compares again does not come to an end."""
    real = sending.due
    said: set[tuple[object, ...]] = set()

    def once(job, record, **options):
        what = real(job, record, **options)
        if what is not Due.FORGET:
            if (job.key, what) in said:
                return None
            said.add((job.key, what))
        return what

    monkeypatch.setattr(sending, "due", once)
    monkeypatch.setattr("simulation.seed.END_SECONDS", 120.0)
    assert "not over" in first_violation()


def test_a_host_that_is_given_too_much_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that together hold more CPUs than their host has are caught."""
    real = judge.Judge.host_exists

    def smaller(self, host, cpu_millicores):
        real(self, host, cpu_millicores // 3)

    # The product is told three times what the host has.
    monkeypatch.setattr(judge.Judge, "host_exists", smaller)
    assert "runs more than it has" in first_violation()


@pytest.mark.parametrize(
    ("ports", "violation"),
    [
        (dict.fromkeys(range(3), 20_000), "has the master port 20000 while"),
        ({0: 20_000, 1: 20_001, 2: 20_002}, "another master port than a rank before it"),
        ({}, "nodes is told the master port None"),
    ],
    ids=["of two gangs", "of each rank", "none"],
)
def test_a_wrong_port_is_seen(
    monkeypatch: pytest.MonkeyPatch, ports: Mapping[int, int], violation: str
) -> None:
    """Two gangs at work with one port are caught, and so are ranks with different ones or without."""
    real = sending.job_request

    def told_wrong(run, attempt, job, *others):
        if len(attempt.jobs) > 1:
            attempt = dataclasses.replace(attempt, master_port=ports.get(job.key.rank))
        return real(run, attempt, job, *others)

    monkeypatch.setattr(sending, "job_request", told_wrong)
    assert violation in first_violation()
