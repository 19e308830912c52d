"""What a new agent makes of each directory, against each record."""

from __future__ import annotations

from typing import Any

import pytest

from fleetform.agents.host.effects import (
    KillLeftovers,
    Persist,
    RemoveJobDirectory,
    SignalStop,
    StartPreparing,
    StartSupervisor,
    WatchSupervisor,
)
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.launch import Launch
from fleetform.agents.host.recovery import Condition, Found, recover
from fleetform.agents.protocol.messages import Forget, JobKey, Start, Stop
from fleetform.agents.protocol.states import Cause, JobState
from unit.agents_host.jobs import BOOT, NOW, Disk, job, journal, prepare, result

KEY = JobKey("a", 1, 0)

LAUNCH = Launch(
    "job-a", "a", 1, 0, 1, "d", "/bin/sh", [], {}, "work", [], None, "poll", None, 0, None, 0, 0, 0
)  # fmt: skip

ENDED = Found(Condition.ENDED, LAUNCH, result())


class Past:
    """An agent that got this far before it died."""

    def __init__(self) -> None:
        self.mind = journal()
        self.disk = Disk()

    def preparing(self, **fields: Any) -> Past:
        return self._do(self.mind.handle(prepare(job(**fields)), NOW))

    def prepared(self, **fields: Any) -> Past:
        self.preparing(**fields)
        return self._do(self.mind.prepared("job-a"))

    def starting(self) -> Past:
        return self.prepared(go=True)

    def running(self) -> Past:
        self.starting()
        return self._do(self.mind.supervisor_started("job-a", NOW))

    def stopping(self) -> Past:
        return self._do(self.mind.handle(Stop(9, KEY, "job-a", 9, grace_seconds=4), NOW))

    def ended(self) -> Past:
        self.running()
        return self._do(self.mind.supervisor_ended(result()))

    def forgotten(self) -> Past:
        self.ended()
        return self._do(self.mind.handle(Forget(3, (KEY,)), NOW))

    def _do(self, effects: list[Any]) -> Past:
        self.disk.take(effects)
        return self

    def wake(self, found: Found | None, *, boot_id: str = BOOT) -> tuple[Journal, list[Any]]:
        mind = journal(self.disk.restore(), boot_id=boot_id, log_id="log-2")
        seen = {} if found is None else {"job-a": found}
        effects = recover(mind, seen, boot_id=boot_id, now_ms=NOW)
        shown = [e for e in effects if not isinstance(e, Persist)]
        return mind, [e for e in shown if type(e).__name__ != "Announce"]


def state(mind: Journal) -> tuple[JobState, Cause | None]:
    record = mind.find("job-a")
    assert record is not None
    return record.state, record.cause


def test_interrupted_while_preparing() -> None:
    """What was being prepared is dropped, so that the controller prepares it again, and it starts once."""
    mind, effects = Past().preparing().wake(None)
    assert effects == [RemoveJobDirectory("job-a")]
    assert mind.find("job-a") is None
    again = mind.handle(prepare(job(go=True, gen=2)), NOW)
    assert [e.job.gen for e in again if isinstance(e, StartPreparing)] == [2]


def test_prepared() -> None:
    """What is prepared stays so, and its start still works."""
    mind, effects = Past().prepared().wake(Found(Condition.PREPARED, LAUNCH))
    assert (effects, state(mind)) == ([], (JobState.PREPARED, None))
    assert StartSupervisor("job-a") in mind.handle(Start(2, KEY, 2, BOOT), NOW)


@pytest.mark.parametrize("past", [Past().starting(), Past().preparing(go=True)])
def test_start_that_was_not_carried_out(past: Past) -> None:
    """A committed start whose supervisor was never forked is carried out now."""
    _, effects = past.wake(Found(Condition.PREPARED, LAUNCH))
    assert effects == [StartSupervisor("job-a")]


def test_stopped_before_it_was_carried_out() -> None:
    """A start that was neither carried out nor still wanted never will be."""
    mind, effects = Past().starting().stopping().wake(Found(Condition.PREPARED, LAUNCH))
    assert effects == [RemoveJobDirectory("job-a")]
    assert state(mind) == (JobState.FINISHED, Cause.NEVER_STARTED)


def test_running() -> None:
    """A job whose supervisor lives goes on, also under a record that is older than that."""
    for past in (Past().running(), Past().starting(), Past().preparing(go=True)):
        mind, effects = past.wake(Found(Condition.RUNNING, LAUNCH))
        assert effects == [WatchSupervisor("job-a")]
        assert state(mind) == (JobState.RUNNING, None)


def test_running_and_to_be_stopped() -> None:
    """A stop that may not have reached the supervisor is said again."""
    _, effects = Past().running().stopping().wake(Found(Condition.RUNNING, LAUNCH))
    assert effects == [WatchSupervisor("job-a"), SignalStop("job-a", Cause.STOPPED, 4)]


def test_ended_meanwhile() -> None:
    """A result is the end, whatever boot it comes from."""
    for boot_id in (BOOT, "boot-2"):
        mind, effects = Past().running().wake(ENDED, boot_id=boot_id)
        assert (effects, state(mind)) == ([], (JobState.FINISHED, Cause.EXITED))


def test_abandoned() -> None:
    """What has started and has neither supervisor nor result is cleared and lost."""
    mind, effects = Past().running().wake(Found(Condition.ABANDONED, LAUNCH))
    assert effects == [KillLeftovers("job-a")]
    mind.lost("job-a", "gone", 0, NOW)
    assert state(mind) == (JobState.FINISHED, Cause.LOST)


def test_directory_gone() -> None:
    """A job that may have started and whose directory is gone is lost, not begun again."""
    _, effects = Past().starting().wake(None)
    assert effects == [KillLeftovers("job-a")]


@pytest.mark.parametrize(
    "condition", [Condition.ABSENT, Condition.PREPARED, Condition.ABANDONED, Condition.INCOMPLETE]
)
def test_rebooted(condition: Condition) -> None:
    """After a reboot everything without a result is lost, also what looks merely prepared."""
    for past in (Past().prepared(), Past().running()):
        mind, effects = past.wake(Found(condition, LAUNCH), boot_id="boot-2")
        assert (effects, state(mind)) == ([], (JobState.FINISHED, Cause.LOST))


def test_forgotten() -> None:
    """A directory that forgetting did not get to goes now; the tombstone stays."""
    mind, effects = Past().forgotten().wake(ENDED)
    assert effects == [RemoveJobDirectory("job-a")]
    record = mind.find("job-a")
    assert record is not None
    assert record.tombstone


def test_ended_and_not_forgotten() -> None:
    """A finished job and its directory are left as they are."""
    mind, effects = Past().ended().wake(ENDED)
    assert (effects, state(mind)) == ([], (JobState.FINISHED, Cause.EXITED))


@pytest.mark.parametrize(
    ("found", "kinds", "cause"),
    [
        (ENDED, [], Cause.EXITED),
        (Found(Condition.RUNNING, LAUNCH), [WatchSupervisor], None),
        (Found(Condition.ABANDONED, LAUNCH), [KillLeftovers], None),
    ],
)
def test_lost_record(found: Found, kinds: list[type[Any]], cause: Cause | None) -> None:
    """A job whose record a power cut took is known again from its directory."""
    mind, effects = Past().wake(found)
    assert [type(e) for e in effects] == kinds
    assert state(mind)[1] is cause


@pytest.mark.parametrize("condition", [Condition.PREPARED, Condition.INCOMPLETE])
def test_directory_of_nobody(condition: Condition) -> None:
    """What was prepared for a record that is lost has not run, and goes."""
    _, effects = Past().wake(Found(condition, LAUNCH))
    assert effects == [RemoveJobDirectory("job-a")]
