"""Runs with `on_silence: stop after …` on hosts that hear no controller, under a virtual clock."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fleetform.agents.host import journal
from fleetform.agents.protocol.frames import encode
from fleetform.agents.protocol.messages import Heartbeat
from fleetform.agents.protocol.states import Cause
from fleetform.app.why import why_runs
from fleetform.model.instance import InstanceState
from fleetform.model.run import RunState
from simulation.controller import VirtualClock
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task

AFTER, GRACE = 600, 3
PROOF = (AFTER + GRACE) * 1.02 + 10
MISSED = 30
"""A host is marked as recovering by then."""

NOTICED = 45
"""A connection that carries nothing is given up by then."""

ROUND = 2


def silent_task(**more: Any) -> dict[str, Any]:
    document = {
        "on_silence": {"action": "stop", "after": AFTER},
        "stop_duration": GRACE,
        "retry": {"on": ["node-failure"], "max_attempts": 3},
    }
    return task(**{**document, **more})


def now() -> float:
    return asyncio.get_running_loop().time()


async def begin(rig: Rig, document: dict[str, Any]) -> str:
    """Have the run `one` at work on one of two hosts; returns the name of the host."""
    await rig.apply(make_desired(pool(2), {"one": document}))
    await rig.until(lambda: any(host.running() for host in rig.world.hosts.values()))
    (name,) = (name for name, host in rig.world.hosts.items() if host.running())
    return name


async def ended(rig: Rig, host: str) -> float:
    """Wait until nothing runs on a host; returns when that was."""
    await rig.until(lambda: not rig.world.hosts[host].running())
    return now()


def other(host: str) -> str:
    return "pool-1" if host == "pool-0" else "pool-0"


def test_the_run_goes_on_elsewhere_when_its_end_is_proven() -> None:
    """The host ends the job first, the next attempt starts after that, and the host is tidied up later."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task())
        began = now()
        isolation = asyncio.create_task(rig.world.isolate(host, 2000))
        over = await ended(rig, host)
        assert AFTER - 15 <= over - began <= AFTER + GRACE + 1
        await rig.until(lambda: bool(rig.world.hosts[other(host)].running()))
        assert PROOF - 1 <= now() - began <= PROOF + NOTICED + ROUND
        assert rig.causes("one") == [Cause.LOST, None]
        await isolation
        await rig.until(lambda: not rig.ledger.read_book().lingering)
        assert not rig.world.hosts[host].running()
        assert not rig.world.hosts[host].directories

    rig.play(story())
    assert rig.judge.violations == []


def test_a_short_break_leaves_a_run_as_it_is() -> None:
    """A host whose agent is started again is recovering for a moment, and its run never unknown."""
    rig = Rig({"one": 50})

    async def story() -> None:
        host = await begin(rig, task())
        rig.world.reachable[host] = False
        rig.world.kill_agent(host)
        await asyncio.sleep(8)
        assert rig.hosts()[host] is InstanceState.RECOVERING
        assert rig.state("one") is RunState.RUNNING
        rig.world.reachable[host] = True
        await rig.until(lambda: rig.hosts()[host] is InstanceState.READY)
        await rig.until(lambda: rig.state("one") is RunState.DONE)

    rig.play(story())
    (history,) = rig.ledger.read_runs(["one"])
    assert history.run.attempt == 1


def test_a_host_that_stays_away_is_unreachable_after_the_grace() -> None:
    """Ten seconds after its connection was lost, and not before; its run is unknown from then on."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, task())
        began = now()
        rig.world.reachable[host] = False
        rig.world.kill_agent(host)
        await rig.until(lambda: rig.hosts()[host] is InstanceState.UNREACHABLE)
        assert 10 <= now() - began <= 10 + ROUND
        assert rig.state("one") is RunState.UNKNOWN

    rig.play(story())


def test_a_host_that_misses_a_heartbeat_is_recovering() -> None:
    """A host without power closes no connection; its row says when it was heard last."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, task())
        began = now()
        isolation = asyncio.create_task(rig.world.isolate(host, 2000))
        await rig.until(lambda: rig.hosts()[host] is InstanceState.RECOVERING)
        assert now() - began <= MISSED
        (instance,) = (one for one in rig.ledger.read_live().instances if one.name == host)
        assert instance.message == "no heartbeat"
        assert instance.seen_at_ms is not None
        assert 20_000 <= VirtualClock().now_ms() - instance.seen_at_ms <= 30_000
        assert rig.state("one") is RunState.RUNNING
        await rig.until(lambda: rig.hosts()[host] is InstanceState.UNREACHABLE)
        assert now() - began <= NOTICED + ROUND
        isolation.cancel()

    rig.play(story())


def test_a_host_that_is_heard_again_is_ready() -> None:
    """Its connection has lasted, so it says no hello; its run was never unknown."""
    rig = Rig({"one": 100})

    async def story() -> None:
        host = await begin(rig, task())
        isolation = asyncio.create_task(rig.world.isolate(host, 32))
        await rig.until(lambda: rig.hosts()[host] is InstanceState.RECOVERING)
        await isolation
        await rig.until(lambda: rig.hosts()[host] is InstanceState.READY)
        await rig.until(lambda: rig.state("one") is RunState.DONE)

    rig.play(story())
    (history,) = rig.ledger.read_runs(["one"])
    assert history.run.attempt == 1
    assert rig.lives.lives == 1


def test_a_run_without_retry_fails_and_says_why() -> None:
    """The reason names the host and the field."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task(retry=None))
        isolation = asyncio.create_task(rig.world.isolate(host, 2000))
        await rig.until(lambda: rig.state("one") is RunState.FAILED)
        assert rig.run("one").message == (
            f"lost: host {host} is unreachable, and stops a job that hears no controller for 10m00s"
            " (`on_silence`)"
        )
        isolation.cancel()

    rig.play(story())


def test_a_new_controller_counts_from_its_beginning() -> None:
    """What an earlier one said to the host it does not know: it was before that."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task())
        isolation = asyncio.create_task(rig.world.isolate(host, 3000))
        await asyncio.sleep(PROOF - 15)
        assert not rig.world.hosts[host].running()
        await rig.kill_manager()
        began = now()
        await rig.until(lambda: bool(rig.world.hosts[other(host)].running()))
        assert now() - began >= PROOF - 1
        isolation.cancel()

    rig.play(story())
    assert rig.judge.violations == []


def test_without_the_field_silence_proves_nothing() -> None:
    """The job runs on, however long its host is silent, and no other attempt begins."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task(on_silence={"action": "wait"}))
        await rig.world.isolate(host, 3000)
        assert rig.world.hosts[host].running()
        assert rig.causes("one") == [None]

    rig.play(story())


def test_a_cut_of_an_hour_loses_nothing() -> None:
    """The job ends meanwhile and runs once; its result arrives when its host answers again."""
    rig = Rig({"one": 1800})

    async def story() -> None:
        host = await begin(rig, silent_task(on_silence={"action": "wait"}))
        await rig.world.isolate(host, 3600)
        assert rig.state("one") is RunState.UNKNOWN
        await rig.until(lambda: rig.state("one") is RunState.DONE)

    rig.play(story())
    assert rig.judge.executions() == 1
    assert rig.judge.violations == []


def test_an_agent_that_is_killed_changes_nothing() -> None:
    """The limit holds while no agent runs, and the next one has the result."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task())
        began = now()
        isolation = asyncio.create_task(rig.world.isolate(host, 1000))
        rig.world.kill_agent(host)
        assert await ended(rig, host) - began <= AFTER + GRACE + 1
        await isolation

    rig.play(story())
    assert rig.judge.violations == []


def test_an_answer_that_comes_late_prolongs_nothing() -> None:
    """What was on its way to the host arrives long after the controller has given up the connection."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task())
        began = now()
        agent = rig.world.agents[host]
        agent.hold_connections(AFTER - 20)
        (link,) = (one for one in agent._links if one.is_open)
        link.near.write(encode(Heartbeat(rig.world.hosts[host].boot_ms())))
        rig.world.reachable[host] = False
        assert await ended(rig, host) - began <= AFTER + GRACE + 1
        await rig.until(lambda: bool(rig.world.hosts[other(host)].running()))
        rig.world.reachable[host] = True

    rig.play(story())
    assert rig.judge.violations == []


def test_a_later_limit_is_for_later_attempts() -> None:
    """A job that started without a limit is never believed to have ended by one."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task(on_silence={"action": "wait"}))
        await rig.apply(make_desired(pool(2), {"one": silent_task()}))
        await rig.world.isolate(host, 3000)
        assert rig.world.hosts[host].running()
        assert rig.causes("one") == [None]

    rig.play(story())


def test_an_earlier_agent_gets_no_such_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would let the job run on; the run fails and says what is wrong with the host."""
    monkeypatch.setattr(journal, "CAPABILITIES", ("job.account",))
    rig = Rig({"one": 5})

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"one": silent_task()}))
        await rig.until(lambda: rig.state("one") is RunState.FAILED)
        assert rig.judge.executions() == 0
        assert rig.run("one").message.startswith(
            "could not be prepared: the agent of host pool-0 is of an earlier release, which cannot start"
            " jobs with `on_silence`"
        )

    rig.play(story())


def test_why_says_what_the_host_does() -> None:
    """A run that is unknown says when its host stops it, and when it counts as lost."""
    rig = Rig({"one": 5000})

    async def story() -> None:
        host = await begin(rig, silent_task())
        isolation = asyncio.create_task(rig.world.isolate(host, 3000))
        await rig.until(lambda: rig.state("one") is RunState.UNKNOWN)
        (element,) = why_runs(rig.ledger, rig.ledger.read_runs(["one"]), now_ms=0)
        assert element.why.summary.endswith(
            "It is not started again while its job may still run there. A host stops it after 10m00s"
            " without a controller (`on_silence`), and it counts as lost when a controller has not reached"
            " the host for 10m25s."
        )
        isolation.cancel()

    rig.play(story())
