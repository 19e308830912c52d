from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from fleetform.agents.protocol.states import Cause
from fleetform.controllers.manager import POLL_SECONDS
from fleetform.model.ports import LedgerUnavailable
from fleetform.model.run import RunState
from fleetform.providers.contract.errors import RefusedForNow
from fleetform.providers.contract.hosts import InstanceRequest
from simulation.controller import Silent, VirtualClock
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task


def fail_once(rig: Rig, name: str) -> list[str]:
    """Let the ledger refuse the next call of `name`; returns what it has refused."""
    real = getattr(rig.ledger, name)
    refused: list[str] = []

    def call(*args: Any, **more: Any) -> Any:
        if not refused:
            refused.append(name)
            raise LedgerUnavailable("the disk is full")
        return real(*args, **more)

    setattr(rig.ledger, name, call)
    return refused


def test_an_answer_that_cannot_be_written_is_written_later() -> None:
    """A host that has refused a job is not asked again: its answer must not be lost."""
    rig = Rig({"one": 1})
    rig.faults.prepare_seconds = 100.0
    refused = fail_once(rig, "commit_news")

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: rig.state("one") is RunState.PREPARING)
        assert rig.lives.manager is not None
        runs = rig.lives.manager.runs
        assert runs is not None
        (job,) = runs.mirror.all_jobs()
        (session,) = runs._hosts._sessions.values()
        runs._sender._take_refusal(session, job, "a file of it has changed")
        rig.faults.prepare_seconds = 0.1
        await rig.until(lambda: Cause.PREPARE_FAILED in rig.causes("one"))
        await rig.until(lambda: rig.state("one") is RunState.DONE)
        # Far less than the ten minutes after which a host that prepares is given up.
        assert asyncio.get_running_loop().time() < 120

    rig.play(story())
    assert refused
    assert not rig.judge.violations


def test_deadlines_are_kept_after_the_clock_was_set_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever prepares without end is given up in ten minutes, and not in an hour and ten."""
    rig = Rig({"one": 1})
    rig.faults.prepare_seconds = 100_000.0
    read = VirtualClock.now_ms

    async def story() -> None:
        await rig.until(lambda: rig.lives.manager is not None)
        await rig.apply(make_desired(pool(2), {}))
        await asyncio.sleep(5)
        monkeypatch.setattr(VirtualClock, "now_ms", lambda self: read(self) - 3_600_000)
        await rig.apply(make_desired(pool(2), {"one": task(nodes=2)}))
        await rig.until(lambda: rig.state("one") is RunState.PREPARING)
        rig.faults.prepare_seconds = 0.1
        await rig.until(lambda: rig.state("one") is RunState.DONE)
        assert asyncio.get_running_loop().time() < 900

    rig.play(story())


@pytest.mark.parametrize("turns", range(4))
def test_news_that_meets_a_cancel_does_not_undo_it(turns: int) -> None:
    """Whoever ends a manager that has just been woken ends it: Ctrl-C arrives at any moment."""
    rig = Rig({})

    async def story() -> None:
        await rig.until(lambda: rig.lives.manager is not None)
        manager = rig.lives.manager
        assert manager is not None
        assert manager.runs is not None
        manager._awake.clear()
        resting = asyncio.create_task(manager._rest(manager.runs))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        manager.wake()
        for _ in range(turns):
            await asyncio.sleep(0)
        is_asked = resting.cancel()
        await asyncio.wait((resting,))
        assert resting.cancelled() is is_asked

    rig.play(story())


def test_a_plan_that_cannot_be_read_is_looked_for_again() -> None:
    """A ledger that is away for a moment does not leave an accepted plan lying."""
    rig = Rig({})
    refused = fail_once(rig, "unfinished_apply")

    async def story() -> None:
        await rig.until(lambda: bool(refused))
        assert rig.lives.manager is not None
        assert rig.lives.manager._look_for_plans
        await rig.apply(make_desired(pool(1), {}))

    rig.play(story())


def test_no_two_hellos_have_the_same_number() -> None:
    """What was lost with the session before a fleet's change is sent again in the next one."""
    rig = Rig({})

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        assert rig.lives.manager is not None
        assert rig.lives.manager.runs is not None
        hosts = rig.lives.manager.runs._hosts
        (before,) = hosts._sessions.values()
        await hosts._drop(before)
        await hosts.reach(before.instance)
        (after,) = hosts._sessions.values()
        assert after is not before
        assert after.generation > before.generation

    rig.play(story())


def test_a_host_without_space_for_a_file_refuses_the_job() -> None:
    """No reconnect would send the job again: it is placed again at once."""
    rig = Rig({"one": 1})

    async def no_space(*_: object) -> None:
        raise RefusedForNow("no space left on the host")

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        assert rig.lives.manager is not None
        assert rig.lives.manager.runs is not None
        sender: Any = rig.lives.manager.runs._sender
        real, sender._uploads.ensure = sender._uploads.ensure, no_space
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: Cause.PREPARE_FAILED in rig.causes("one"))
        sender._uploads.ensure = real
        await rig.until(lambda: rig.state("one") is RunState.DONE)
        assert asyncio.get_running_loop().time() < 120

    rig.play(story())
    assert not rig.judge.violations


class Heard(Silent):
    """What the manager would print."""

    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str, **_about: object) -> None:
        self.notices.append(text)


def test_a_ledger_that_is_away_for_long_is_told_once() -> None:
    """Not once a second for as long as the disk is full; and that it is back is told too."""
    rig = Rig({})
    heard = rig.lives._progress = Heard()
    away = ["the disk is full"]

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        real = rig.ledger.unfinished_apply

        def call() -> Any:
            if away:
                raise LedgerUnavailable(away[0])
            return real()

        rig.ledger.unfinished_apply = call
        rig.lives.written_elsewhere()
        await asyncio.sleep(30)
        away[0] = "its server does not answer"
        await asyncio.sleep(30)
        away.clear()
        await asyncio.sleep(5)

    rig.play(story())
    assert heard.notices == [
        "waiting for the ledger: the disk is full",
        "waiting for the ledger: its server does not answer",
        "the ledger is available again",
    ]


def looks_often(rig: Rig) -> None:
    """As in production; a simulation looks once a second, and is told what others write."""
    assert rig.lives.manager is not None
    rig.lives.manager._poll_seconds = POLL_SECONDS


@pytest.mark.parametrize("is_told_at_once", [True, False])
def test_whether_others_have_written_is_asked_only_where_it_is_not_seen(
    is_told_at_once: bool,
) -> None:
    """A look that costs nothing says that nothing has changed; where there is none, it is asked."""
    rig = Rig({})
    asked: list[float] = []
    real = rig.ledger.serial

    def serial() -> int:
        asked.append(asyncio.get_running_loop().time())
        return real()

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        looks_often(rig)
        await asyncio.sleep(10)
        rig.ledger.serial = serial  # counted from here on
        if not is_told_at_once:
            rig.ledger.glance = lambda: None  # as of a server
        await asyncio.sleep(10)

    rig.play(story())
    # A round a second asks as well.
    assert len(asked) < 30 if is_told_at_once else len(asked) > 300


def test_what_others_write_is_seen_within_a_look() -> None:
    """Without a request: the manager looks for plans as soon as the serial is another."""
    rig = Rig({})
    looked: list[float] = []
    late: list[float] = []
    real, serials = rig.ledger.unfinished_apply, [1_000]

    def unfinished_apply() -> Any:
        looked.append(asyncio.get_running_loop().time())
        return real()

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        looks_often(rig)
        rig.ledger.unfinished_apply = unfinished_apply
        rig.ledger.glance = rig.ledger.serial = lambda: serials[-1]
        for _ in range(10):
            await asyncio.sleep(10.3)
            looked.clear()
            written_at = asyncio.get_running_loop().time()
            serials.append(serials[-1] + 1)
            await rig.until(lambda: bool(looked))
            late.append(looked[0] - written_at)

    rig.play(story())
    # A look, and a round that was under way; a round comes only once a second.
    assert max(late) < 0.2


def test_a_run_does_not_wait_for_a_host_that_a_step_waits_for() -> None:
    """It starts on another host; none is unschedulable while a step may still bring in hosts."""
    rig = Rig({"one": 1})
    connect, is_there = rig.world.connect, asyncio.Event()

    async def connect_later(request: InstanceRequest, *more: Any) -> Any:
        if request.name == "pool-1":
            await is_there.wait()
        return await connect(request, *more)

    rig.world.connect = connect_later  # a host that is off
    big = task(resources={"cpu": {"min": 9000, "max": 9000}})
    desired = make_desired(pool(2), {"one": task(), "big": big})
    # A run that names its fleet is submitted after the step of the fleet.
    anywhere = {key: replace(one, references=()) for key, one in desired.resources.items()}

    async def story() -> None:
        applying = asyncio.create_task(rig.apply(replace(desired, resources=anywhere)))
        await rig.until(lambda: bool(rig.ledger.read_runs(["one"])))
        await rig.until(lambda: rig.state("one") is RunState.DONE)
        assert 10 < asyncio.get_running_loop().time() < 20
        assert not applying.done()
        assert rig.state("big") is RunState.SUBMITTED
        is_there.set()
        await applying
        await rig.until(lambda: rig.state("big") is RunState.UNSCHEDULABLE)

    rig.play(story())
    assert not rig.judge.violations
