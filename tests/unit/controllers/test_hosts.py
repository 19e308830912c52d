"""Who waits for a host hears what has become of it, and does not wait for nothing."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fleetform.agents.protocol.messages import GpuProcess, GpuReport, HostReport
from fleetform.controllers.hosts import HostSessions
from fleetform.model.instance import GpuUse, Instance
from fleetform.model.ports import LedgerUnavailable
from fleetform.providers.contract.errors import TemporaryError
from fleetform.providers.contract.hosts import InstanceRequest
from simulation.agent import Agent
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool


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
        monkeypatch.setattr(hosts._progress, "notice", lambda text, **_about: told.append(text))
        silence.end()
        await hosts.reach(instance)
        await asyncio.sleep(60)

    rig.play(story())
    assert [one for one in told if "cannot be stored" in one] == [
        "host pool-0: its report cannot be stored: the disk is full"
    ]


def test_gpus_that_become_used_outside_fleetform_are_recorded_within_a_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And when they are free again; the ledger is written at changes only."""
    rig = Rig({})
    process = GpuProcess(123, "ada", "python")
    use: list[GpuProcess | None] = [None]
    report = Agent._report

    def with_gpu(agent: Agent) -> HostReport:
        gpu = GpuReport(0, "GPU-0", "A100", 80 << 30, used_by=use[0])
        return replace(report(agent), gpus=(gpu,))

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

    monkeypatch.setattr(Agent, "_report", with_gpu)
    rig.play(story())
