"""What the agent accepts, refuses and remembers, as values."""

from __future__ import annotations

import pytest

from fleetform.agents.host.effects import (
    Announce,
    KillLeftovers,
    Persist,
    RemoveJobDirectory,
    Send,
    SignalStop,
    StartPreparing,
    StartSupervisor,
)
from fleetform.agents.host.journal import Journal
from fleetform.agents.host.runtimes import RUNTIMES
from fleetform.agents.protocol.messages import (
    Acknowledge,
    Cursor,
    Forget,
    JobKey,
    Rejected,
    Start,
    Stop,
    Welcome,
)
from fleetform.agents.protocol.states import TAKEN_AWAY, Cause, JobState
from unit.agents_host.jobs import (
    BOOT,
    HELLO,
    NOW,
    Disk,
    announced,
    job,
    journal,
    newer,
    of_kind,
    prepare,
    reply,
    result,
)

KEY = JobKey("a", 1, 0)
DAY_MS = 24 * 3600 * 1000


def prepared(mind: Journal, name: str = "a", **fields: object) -> None:
    spec = job(name, **fields)
    assert reply(mind.handle(prepare(spec), NOW)).ok
    mind.prepared(spec.job_uid)


def running(mind: Journal, name: str = "a", **fields: object) -> None:
    prepared(mind, name, go=True, **fields)
    mind.supervisor_started(f"job-{name}", NOW)


def finished(mind: Journal, name: str = "a") -> None:
    running(mind, name)
    mind.supervisor_ended(result(name))


def test_prepare_keeps_before_it_answers() -> None:
    """A new job is written down first, then answered, then made."""
    effects = journal().handle(prepare(job()), NOW)
    assert [type(effect) for effect in effects] == [Persist, Send, StartPreparing]


def test_go_starts_once_prepared() -> None:
    """A prepare whose start is committed goes on by itself, without an event in between."""
    mind = journal()
    mind.handle(prepare(job(go=True)), NOW)
    effects = mind.prepared("job-a")
    assert [type(effect) for effect in effects] == [Persist, StartSupervisor]


def test_two_phases() -> None:
    """A prepare without `go` waits for its start, and says when it is prepared."""
    mind = journal()
    mind.handle(prepare(job()), NOW)
    assert [r.state for r in announced(mind.prepared("job-a"))] == [JobState.PREPARED]
    effects = mind.handle(Start(2, KEY, 2, BOOT), NOW)
    assert of_kind(effects, StartSupervisor) == [StartSupervisor("job-a")]
    assert reply(effects).body["record"].gen == 2


def test_start_while_preparing() -> None:
    """A start that comes while the job is still being prepared is not forgotten."""
    mind = journal()
    mind.handle(prepare(job()), NOW)
    assert not of_kind(mind.handle(Start(2, KEY, 2, BOOT), NOW), StartSupervisor)
    assert of_kind(mind.prepared("job-a"), StartSupervisor)


def test_life_of_a_job() -> None:
    """Running and the end are announced, with what the supervisor measured."""
    mind = journal()
    prepared(mind, go=True)
    assert announced(mind.supervisor_started("job-a", NOW))[0].state is JobState.RUNNING
    assert announced(mind.supervisor_cleaning("job-a"))[0].state is JobState.CLEANING
    (record,) = announced(mind.supervisor_ended(result(exit_code=3)))
    assert (record.state, record.cause, record.exit_code) == (JobState.FINISHED, Cause.EXITED, 3)
    assert (record.peak_memory_bytes, record.cpu_time_ms, record.log_bytes) == (1024, 3, 12)


def test_repeated_commands_change_nothing() -> None:
    """Each command said twice is answered with the current state and done once."""
    mind = journal()
    mind.handle(prepare(job()), NOW)
    again = mind.handle(prepare(job()), NOW)
    assert [type(effect) for effect in again] == [Send]
    mind.prepared("job-a")
    mind.handle(Start(2, KEY, 2, BOOT), NOW)
    again = mind.handle(Start(2, KEY, 2, BOOT), NOW)
    assert [type(effect) for effect in again] == [Send]
    assert reply(again).body["record"].state is JobState.STARTING
    mind.supervisor_started("job-a", NOW)
    stop = Stop(3, KEY, "job-a", 3)
    assert of_kind(mind.handle(stop, NOW), SignalStop)
    assert not of_kind(mind.handle(stop, NOW), SignalStop)


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        (newer(job(), 1, commands=("other",)), "conflict"),
        (newer(job(), 3, commands=("other",)), "conflict"),
        (newer(job(), 0), "stale"),
        (newer(job(), 3, boot_id="boot-0"), "boot_changed"),
    ],
)
def test_prepare_refused(spec: object, code: str) -> None:
    """Boot, gen and digest are checked in this order, and the answer carries the record."""
    mind = journal()
    prepared(mind)
    mind.handle(Start(2, KEY, 2, "boot-0"), NOW)
    answer = reply(mind.handle(prepare(spec), NOW))
    assert (answer.ok, answer.code) == (False, code)
    assert answer.body["record"].job_uid == "job-a"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"job_uid": "../../etc"}, "invalid"),
        ({"job_uid": ""}, "invalid"),
        ({"job_uid": "."}, "invalid"),
        ({"job_uid": "job-taken"}, "conflict"),
        ({"runtime": "container"}, "unsupported"),
        ({"gpus": ("GPU-1",)}, "busy"),
    ],
)
def test_new_job_refused(fields: dict[str, object], code: str) -> None:
    """What cannot be a job here is refused, and leaves nothing behind."""
    mind = journal()
    prepared(mind, "taken", gpus=("GPU-1",))
    answer = reply(mind.handle(prepare(job("b", **fields)), NOW))
    assert (answer.ok, answer.code) == (False, code)
    assert mind.find("job-b") is None


def test_units_are_free_again() -> None:
    """A GPU goes to the next job when the one that had it has ended, however it ended."""
    mind = journal()
    running(mind, "a", gpus=("GPU-1",))
    prepared(mind, "b", gpus=("GPU-2",))
    mind.supervisor_ended(result("a"))
    mind.handle(Stop(5, JobKey("b", 1, 0), "job-b", 2), NOW)
    for name, gpu in (("c", "GPU-1"), ("d", "GPU-2")):
        assert reply(mind.handle(prepare(job(name, gpus=(gpu,))), NOW)).ok


def test_stop_of_the_unseen_is_a_tombstone() -> None:
    """A stop that overtakes its prepare is proof that the job never started, and stays."""
    mind = journal()
    effects = mind.handle(Stop(1, KEY, "job-a", 2), NOW)
    record = reply(effects).body["record"]
    assert (record.cause, record.tombstone) == (Cause.NEVER_STARTED, True)
    assert effects.index(of_kind(effects, Persist)[0]) < effects.index(of_kind(effects, Send)[0])
    for gen in (1, 2, 3):
        late = reply(mind.handle(prepare(newer(job(), gen, go=True)), NOW))
        assert (late.ok, late.code) == (False, "stale")
    late = reply(mind.handle(Start(9, KEY, 3, BOOT), NOW))
    assert (late.ok, late.code) == (False, "stale")


def test_stop_while_preparing() -> None:
    """A job stopped while it is being prepared is gone, and what is made later goes too."""
    mind = journal()
    mind.handle(prepare(job(go=True)), NOW)
    effects = mind.handle(Stop(2, KEY, "job-a", 2), NOW)
    assert of_kind(effects, RemoveJobDirectory)
    assert announced(effects)[0].cause is Cause.NEVER_STARTED
    assert mind.prepared("job-a") == [RemoveJobDirectory("job-a")]
    assert mind.prepare_failed("job-a", "no", NOW) == [RemoveJobDirectory("job-a")]


def test_stop_of_the_ended() -> None:
    """Stopping what has ended changes nothing but the gen."""
    mind = journal()
    finished(mind)
    record = reply(mind.handle(Stop(2, KEY, "job-a", 5), NOW)).body["record"]
    assert (record.cause, record.gen) == (Cause.EXITED, 5)


def test_stop_for_another_uid() -> None:
    """A stop whose uid and key do not belong together hits nobody."""
    mind = journal()
    running(mind)
    assert reply(mind.handle(Stop(2, KEY, "job-b", 5), NOW)).code == "conflict"
    assert reply(mind.handle(Stop(2, JobKey("z", 1, 0), "job-a", 5), NOW)).code == "conflict"


def test_faster_stop() -> None:
    """A newer stop with another grace is passed on."""
    mind = journal()
    running(mind)
    mind.handle(Stop(2, KEY, "job-a", 2, grace_seconds=60), NOW)
    effects = mind.handle(Stop(3, KEY, "job-a", 3, grace_seconds=0), NOW)
    assert of_kind(effects, SignalStop) == [SignalStop("job-a", Cause.STOPPED, 0)]


def test_forget() -> None:
    """Forgetting syncs a tombstone before it answers, and the directory goes."""
    mind = journal()
    finished(mind)
    effects = mind.handle(Forget(2, (KEY,)), NOW)
    assert [type(e) for e in effects] == [Persist, RemoveJobDirectory, Send]
    assert of_kind(effects, Persist)[0].sync
    assert reply(mind.handle(prepare(newer(job(), 7)), NOW)).code == "stale"
    assert reply(mind.handle(Forget(3, (KEY, JobKey("unknown", 1, 0))), NOW)).ok


def test_forget_of_the_living() -> None:
    """A job that has not ended cannot be forgotten; the others of the request are."""
    mind = journal()
    finished(mind, "a")
    running(mind, "b")
    key = JobKey("b", 1, 0)
    answer = reply(mind.handle(Forget(2, (KEY, key)), NOW))
    assert (answer.ok, answer.code, answer.body) == (False, "busy", {"refused": [["b", 1, 0]]})
    record = mind.find("job-a")
    assert record is not None
    assert record.tombstone


def test_tombstones_last_thirty_days() -> None:
    """A tombstone outlives every backup, and then makes room."""
    mind = journal()
    finished(mind)
    mind.handle(Forget(2, (KEY,)), NOW)
    assert mind.expire(NOW + 29 * DAY_MS) == []
    assert of_kind(mind.expire(NOW + 31 * DAY_MS), Persist)
    assert mind.find("job-a") is None


def test_prepare_failed() -> None:
    """A job that cannot be prepared has ended, with the reason."""
    mind = journal()
    mind.handle(prepare(job(go=True)), NOW)
    (record,) = announced(mind.prepare_failed("job-a", "no space", NOW))
    assert (record.cause, record.message) == (Cause.PREPARE_FAILED, "no space")


def test_an_end_is_final() -> None:
    """Whatever is observed after the end changes nothing."""
    mind = journal()
    finished(mind)
    assert mind.supervisor_started("job-a", NOW) == []
    assert mind.supervisor_cleaning("job-a") == []
    assert mind.supervisor_ended(result(exit_code=9)) == []
    assert mind.supervisor_vanished("job-a") == []
    assert mind.lost("job-a", "late", 0, NOW) == []


def test_vanished_supervisor() -> None:
    """What is left of a job is killed before it is said to be lost."""
    mind = journal()
    running(mind)
    assert mind.supervisor_vanished("job-a") == [KillLeftovers("job-a")]
    (record,) = announced(mind.lost("job-a", "gone", 5, NOW))
    assert (record.cause, record.message, record.log_bytes) == (Cause.LOST, "gone", 5)


def test_an_end_that_cannot_be_proven() -> None:
    """The job keeps its units and cannot start again; a later proof makes it lost."""
    mind = journal()
    running(mind)
    (record,) = announced(mind.unproven("job-a", "who knows"))
    assert (record.state, record.message) == (JobState.UNKNOWN, "who knows")
    assert mind.has_live_jobs()
    assert mind.unproven("job-a", "again") == []
    assert mind.supervisor_started("job-a", NOW) == []
    assert mind.supervisor_vanished("job-a") == [KillLeftovers("job-a")]
    (record,) = announced(mind.lost("job-a", "gone", 5, NOW))
    assert (record.state, record.cause) == (JobState.FINISHED, Cause.LOST)


def test_stop_all() -> None:
    """An agent that goes ends what runs and never starts what waits."""
    mind = journal()
    running(mind, "a")
    prepared(mind, "b")
    effects = mind.stop_all(NOW)
    assert of_kind(effects, SignalStop)
    assert [r.cause for r in announced(effects)] == [Cause.NEVER_STARTED]
    assert not of_kind(mind.stop_all(NOW), SignalStop)


def test_a_host_that_is_taken_away() -> None:
    """Each job and the controller are told once. A job has its own time to end, and none after the last order; what waits never starts."""
    mind = journal()
    running(mind, "a")
    prepared(mind, "b")
    effects = mind.interrupt(NOW, grace_seconds=None)
    assert of_kind(effects, SignalStop) == [SignalStop("job-a", Cause.INTERRUPTED, None)]
    told, never_started = announced(effects)
    assert (told.state, told.cause, told.message) == (
        JobState.RUNNING,
        Cause.INTERRUPTED,
        TAKEN_AWAY,
    )
    assert never_started.cause is Cause.NEVER_STARTED
    assert mind.interrupt(NOW, grace_seconds=None) == []
    last = mind.interrupt(NOW, grace_seconds=0)
    assert announced(last) == []
    assert of_kind(last, SignalStop) == [SignalStop("job-a", Cause.INTERRUPTED, 0)]


def test_acknowledged_events_go() -> None:
    """Only what was acknowledged in this log is dropped, and the rest is sent again."""
    mind = journal()
    mind.hello(HELLO)
    finished(mind)
    mind.handle(Acknowledge(Cursor("another", 9)), NOW)
    assert mind.log.oldest == 1
    mind.handle(Acknowledge(Cursor("log-1", 1)), NOW)
    assert (mind.log.oldest, mind.log.newest) == (2, 2)


def test_snapshot_or_cursor() -> None:
    """A good cursor gets events alone; any other gets all records and a place to go on from."""
    mind = journal()
    finished(mind)

    def greet(cursor: Cursor | None) -> tuple[Welcome, list[int]]:
        hello = HELLO.__class__("environment", "ledger", 1, 1, cursor)
        welcome, _ = mind.hello(hello)
        assert isinstance(welcome, Welcome)
        return welcome, [event.number for event in mind.news_for(hello)]

    welcome, news = greet(Cursor("log-1", 1))
    assert (welcome.records, news) == (None, [2])
    welcome, news = greet(Cursor("log-1", 2))
    assert (welcome.records, news) == (None, [])
    mind.handle(Acknowledge(Cursor("log-1", 2)), NOW)
    for cursor in (None, Cursor("log-0", 1), Cursor("log-1", 3), Cursor("log-1", 1)):
        welcome, news = greet(cursor)
        assert welcome.records is not None
        assert [record.job_uid for record in welcome.records] == ["job-a"]
        assert (welcome.newest, news) == (2, [])


def test_hello_is_kept() -> None:
    """Owner and epoch are synced before the answer; saying hello again writes nothing."""
    mind, disk = journal(), Disk()
    _, effects = mind.hello(HELLO)
    assert any(effect.sync for effect in of_kind(effects, Persist))
    disk.take(effects)
    assert mind.hello(HELLO)[1] == []
    again = journal(disk.restore())
    answer, _ = again.hello(HELLO.__class__("foreign", "ledger", 9, 9))
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.owner) == ("foreign_owner", "environment")


def test_the_runtime_of_a_job_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each runtime of the table is accepted, and the next agent finds it; the usual one is not written."""
    monkeypatch.setitem(RUNTIMES, "other", "module:class")
    mind, disk = journal(), Disk()
    disk.take(mind.handle(prepare(job("a")), NOW))
    assert all(b"runtime" not in line for line in disk.lines)
    disk.take(mind.handle(prepare(job("b", runtime="other")), NOW))
    again = journal(disk.restore())
    assert [again.runtime_of(f"job-{name}") for name in "abc"] == ["process", "other", "process"]


def test_events_are_numbered_without_gaps() -> None:
    """Each event's number is one more than the last."""
    mind = journal()
    for name in "abc":
        finished(mind, name)
    numbers = [event.number for event in mind.log.after(0)]
    assert numbers == list(range(1, 7))
    assert not of_kind([], Announce)
