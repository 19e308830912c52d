"""Who waits for a host hears what has become of it, and does not wait for nothing."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fleetform.agents.protocol.host_report import GpuProcess, GpuReport, HostReport
from fleetform.controllers.host_identity import refuse_same_machine
from fleetform.controllers.hosts import HostSessions
from fleetform.model.instance import GpuUse, Instance, InstanceState
from fleetform.model.ports import LedgerUnavailable
from fleetform.model.run import RunState
from fleetform.plan.serialize import dump
from fleetform.providers.contract.errors import (
    NameUnknown,
    PermanentError,
    SameMachine,
    TemporaryError,
)
from fleetform.providers.contract.hosts import InstanceRequest
from fleetform.spec.desired import Desired
from simulation.agent import Agent
from simulation.controller import VirtualClock
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, machines, pool, task


class Silence:
    """A host of the rig that lets nobody in until it is told to."""

    def __init__(self, rig: Rig) -> None:
        self._connect: Callable[..., Any] = rig.world.connect
        self._over = asyncio.Event()
        rig.world.connect = self.connect

    async def connect(self, *arguments: Any) -> Any:
        await self._over.wait()
        return await self._connect(*arguments)

    def end(self) -> None:
        self._over.set()


def report_gpus(monkeypatch: pytest.MonkeyPatch, use: Callable[[], GpuProcess | None]) -> None:
    """Give each host of a rig one GPU, which `use` uses."""
    report = Agent._report

    def with_gpu(agent: Agent) -> HostReport:
        gpu = GpuReport(0, f"GPU-{agent._host.name}", "A100", 80 << 30, used_by=use())
        return replace(report(agent), gpus=(gpu,))

    monkeypatch.setattr(Agent, "_report", with_gpu)


async def silent_host(rig: Rig) -> tuple[HostSessions, Instance, Silence]:
    """A fleet of one whose only session was lost, and whose host is silent since."""
    await rig.apply(make_desired(pool(1), {}))
    assert rig.lives.manager is not None
    assert rig.lives.manager.runs is not None
    hosts = rig.lives.manager.runs._hosts
    (instance,) = rig.ledger.read_live().instances
    silence = Silence(rig)
    session = hosts.session(instance.uid)
    assert session is not None
    await hosts._drop(session)
    return hosts, instance, silence


def test_who_waits_for_a_host_that_is_let_go_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the reason, and not after the minute that a silent host is waited for."""
    rig = Rig({})

    async def story() -> None:
        hosts, instance, silence = await silent_host(rig)

        async def leaving(_instance: Instance) -> bool:
            return True

        monkeypatch.setattr(hosts, "_is_leaving", leaving)
        waiting = asyncio.create_task(hosts.reach(instance))
        await asyncio.sleep(1)
        assert not waiting.done()
        began = asyncio.get_running_loop().time()
        await hosts.release(instance)
        with pytest.raises(TemporaryError, match="host pool-0 is being released"):
            await waiting
        assert asyncio.get_running_loop().time() - began < 5
        silence.end()

    rig.play(story())


def test_a_host_of_another_machine_that_never_answered_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that was reached, and a share of this machine, may have jobs: their release fails."""
    rig = Rig({})

    async def story() -> None:
        hosts, instance, silence = await silent_host(rig)

        async def leaving(_instance: Instance) -> bool:
            return True

        async def unreachable(_request: InstanceRequest) -> None:
            raise TemporaryError("no route to host")

        monkeypatch.setattr(hosts, "_is_leaving", leaving)
        monkeypatch.setattr(rig.world, "release", unreachable)
        await hosts.release(replace(instance, provider="ssh", install_id=""))
        for one in (instance, replace(instance, provider="ssh")):
            with pytest.raises(TemporaryError, match="no route to host"):
                await hosts.release(one)
        silence.end()

    rig.play(story())


def test_a_name_of_a_machine_whose_host_leaves_in_the_same_plan_waits() -> None:
    """Its row says so before its session does: a step has just begun to remove it."""
    rig = Rig({})

    async def story() -> None:
        await rig.apply(make_desired(pool(2), {}))
        assert rig.lives.manager is not None
        assert rig.lives.manager.runs is not None
        hosts = rig.lives.manager.runs._hosts
        first, second = (hosts.session(one.uid) for one in rig.ledger.read_live().instances)
        assert first is not None
        assert second is not None
        for one in (first, second):
            one.instance = replace(one.instance, provider="ssh")
        machine = first.machine = ("machine", "boot")
        with pytest.raises(SameMachine, match="is the same machine as host pool-0"):
            await refuse_same_machine(second, (first,), machine, hosts._row_of)
        first.machine = machine
        rig.ledger.mark_instance(first.instance.uid, state="terminating", message="", now_ms=1)
        with pytest.raises(TemporaryError, match="which is leaving"):
            await refuse_same_machine(second, (first,), machine, hosts._row_of)

    rig.play(story())


def test_who_waits_for_a_host_waits_for_its_next_session() -> None:
    """It is greeted anew under other capacity: all who waited before get that session."""
    rig = Rig({})

    async def story() -> None:
        hosts, instance, silence = await silent_host(rig)
        first = asyncio.create_task(hosts.reach(instance))
        await asyncio.sleep(1)
        other = replace(instance, parts=instance.parts + 1)
        second = asyncio.create_task(hosts.reach(other))
        await asyncio.sleep(1)
        assert not first.done()
        began = asyncio.get_running_loop().time()
        silence.end()
        assert await first is await second
        assert asyncio.get_running_loop().time() - began < 5

    rig.play(story())


def test_what_comes_back_at_once_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk ends each session as soon as there is news; a log of it would fill what is left."""
    rig = Rig({})
    told: list[str] = []

    async def story() -> None:
        hosts, instance, silence = await silent_host(rig)

        async def full(*_arguments: Any) -> None:
            await asyncio.sleep(3)
            raise LedgerUnavailable("the disk is full")

        monkeypatch.setattr(hosts, "_listen", full)
        monkeypatch.setattr(
            hosts._notices._progress, "notice", lambda text, **_about: told.append(text)
        )
        silence.end()
        await hosts.reach(instance)
        await asyncio.sleep(60)

    rig.play(story())
    assert [one for one in told if "cannot be stored" in one] == [
        "host pool-0: its report cannot be stored: the disk is full"
    ]


def test_a_host_that_fails_before_its_step_waits_is_named_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the step, or by a notice where no step waits for it."""
    rig = Rig({})
    told: list[str] = []
    problem = "the name pool-0 cannot be resolved"

    async def unknown(_request: InstanceRequest) -> None:
        raise NameUnknown(problem)

    async def story() -> None:
        hosts, instance, _silence = await silent_host(rig)
        monkeypatch.setattr(rig.world, "ensure", unknown)
        monkeypatch.setattr(
            hosts._notices._progress, "notice", lambda text, **_about: told.append(text)
        )
        declared = replace(
            instance, provider="ssh", install_id="", state=InstanceState.PROVISIONING
        )
        watch = functools.partial(hosts.watch, [declared])
        # The rows of a rig are shares of this machine, and each round reads them.
        monkeypatch.setattr(hosts, "watch", lambda *_rows: watch())
        watch()
        await asyncio.sleep(1)
        with pytest.raises(PermanentError, match=f"host pool-0 does not answer: {problem}"):
            await hosts.reach(declared)
        await asyncio.sleep(60)
        assert told == []
        session = hosts.session(instance.uid)
        assert session is not None
        await hosts._drop(session)
        watch()
        await asyncio.sleep(60)

    rig.play(story())
    assert told == [f"host pool-0: {problem}"]


def test_gpus_that_become_used_outside_fleetform_are_recorded_within_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And when they are free again; the ledger is written at changes only."""
    rig = Rig({})
    process = GpuProcess(123, "ada", "python")
    use: list[GpuProcess | None] = [None]
    report_gpus(monkeypatch, lambda: use[0])

    def is_recorded(use: GpuUse | None) -> bool:
        (instance,) = rig.ledger.read_live().instances
        return instance.gpus[0].used_by == use

    async def story() -> None:
        loop = asyncio.get_running_loop()
        await rig.apply(make_desired(pool(1), {}))
        assert is_recorded(None)
        for now, recorded in ((process, GpuUse(123, "ada", "python")), (None, None)):
            use[0] = now
            began = loop.time()
            await rig.until(functools.partial(is_recorded, recorded))
            assert loop.time() - began < 60
            (generation,) = [one.generation for one in rig.ledger.read_live().instances]
            await asyncio.sleep(120)
            assert [one.generation for one in rig.ledger.read_live().instances] == [generation]

    rig.play(story())


GPU_TASK = {"resources": {"gpu": {"count": {"min": 1, "max": 1}}}}


def hosts_of(rig: Rig, run: str) -> list[str]:
    (history,) = rig.ledger.read_runs([run])
    jobs = [job for attempt in history.attempts for job in attempt.jobs]
    return [history.host_names[job.instance_uid] for job in jobs]


async def enter_while_dead(rig: Rig, desired: Desired) -> None:
    """Kill the manager, and let the next one execute a plan."""
    made = rig.plan(desired)
    rig.crash = 1.0
    rig.ledger.accept(made, dump(made), who="ada", now_ms=VirtualClock().now_ms())
    rig.lives.written_elsewhere()
    await rig.until(lambda: rig.lives.manager is None)
    rig.crash = 0.0
    await rig.until(lambda: rig.ledger.unfinished_apply() is None)


def test_a_new_manager_asks_a_host_with_gpus_before_it_places_a_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its row says that the GPU is free, and another program has begun to use it since."""
    rig = Rig({"train": 1.0})
    use: list[GpuProcess | None] = [None]
    report_gpus(monkeypatch, lambda: use[0])

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {}))
        use[0] = GpuProcess(123, "ada", "python")
        await enter_while_dead(rig, make_desired(pool(1), {"train": task(**GPU_TASK)}))
        await asyncio.sleep(10)
        assert rig.state("train") is RunState.SUBMITTED
        use[0] = None
        await rig.until(lambda: rig.state("train") is RunState.DONE)

    rig.play(story())


@pytest.mark.parametrize("is_refused", [True, False])
@pytest.mark.parametrize("has_gpus", [True, False])
def test_a_host_that_does_not_answer_a_new_manager_keeps_runs_off_others_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, is_refused: bool, has_gpus: bool
) -> None:
    """One that hangs is waited for a while, and then gets no run until it answers."""
    rig = Rig({"a": 1.0, "b": 1.0})
    fleet, run = (pool(2), task(**GPU_TASK)) if has_gpus else (machines(2), task())
    if has_gpus:
        report_gpus(monkeypatch, lambda: None)
    connect: Callable[..., Any] = rig.world.connect

    async def connect_unless_silent(request: InstanceRequest, *rest: Any) -> Any:
        if request.name == "pool-0":
            if is_refused:
                raise TemporaryError("no route to host")
            await asyncio.sleep(600)
        return await connect(request, *rest)

    async def story() -> None:
        clock = asyncio.get_running_loop().time
        await rig.apply(make_desired(fleet, {}))
        monkeypatch.setattr(rig.world, "connect", connect_unless_silent)
        await enter_while_dead(rig, make_desired(fleet, {"a": run, "b": run}))
        began = clock()
        await rig.until(lambda: rig.state("b") is RunState.DONE)
        assert (clock() - began > 9) is not is_refused
        assert clock() - began < 30
        assert hosts_of(rig, "a") == hosts_of(rig, "b") == ["pool-1"]

    rig.play(story())


def test_runs_do_not_wait_for_the_first_answer_of_this_machine_without_gpus() -> None:
    """Its row says all that a round needs."""
    rig = Rig({"a": 1.0})

    async def story() -> None:
        await rig.apply(make_desired(pool(2), {}))
        silence = Silence(rig)
        await enter_while_dead(rig, make_desired(pool(2), {"a": task()}))
        began = asyncio.get_running_loop().time()
        await rig.until(lambda: rig.state("a") is not RunState.SUBMITTED)
        assert asyncio.get_running_loop().time() - began < 3
        silence.end()
        await rig.until(lambda: rig.state("a") is RunState.DONE)

    rig.play(story())
