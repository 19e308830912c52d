"""Hosts on which run after run fails get no runs for a while, and in the end none at all."""

from __future__ import annotations

import asyncio

from fleetform.agents.protocol.host_report import DECLARED_GPU, GpuReport
from fleetform.api.waiting import waiting_reasons
from fleetform.controllers.gpu_use import GPU_PROCESSES_SECONDS
from fleetform.model.instance import InstanceState
from fleetform.model.override import Override, quarantine_of
from fleetform.model.run import RunState
from simulation.controller import VirtualClock
from simulation.scenario import make_desired
from unit.controllers.rig import Rig, pool, task


def test_a_host_that_refuses_run_after_run_is_left_alone() -> None:
    """A full disk costs each run one try; later they run on the same host, and none has failed."""
    names = [f"run-{number}" for number in range(6)]
    rig = Rig(dict.fromkeys(names, 1.0))
    rig.faults.cannot_prepare = 1.0

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {name: task() for name in names}))
        await rig.until(lambda: rig.hosts() == {"pool-0": InstanceState.SUSPECT})
        (instance,) = rig.ledger.read_live().instances
        assert instance.message.startswith("3 runs failed here")
        reasons = waiting_reasons(rig.ledger.read_book(), now_ms=VirtualClock().now_ms())
        assert "(1 suspect)" in reasons[rig.run("run-5").uid][0].detail
        rig.faults.cannot_prepare = 0.0
        began = VirtualClock().now_ms()
        await rig.until(lambda: all(rig.state(name) is RunState.DONE for name in names))
        assert 300_000 <= VirtualClock().now_ms() - began < 320_000
        assert rig.hosts() == {"pool-0": InstanceState.READY}

    rig.play(story())
    assert max(rig.run(name).attempt for name in names) == 2
    assert not rig.judge.violations


def test_a_host_that_is_suspect_again_and_again_is_quarantined() -> None:
    """After the third time it gets nothing, with a new manager too, until a person lifts that."""
    names = [f"run-{number}" for number in range(3)]
    rig = Rig(dict.fromkeys(names, 1.0))
    rig.faults.cannot_prepare = 1.0

    def quarantine() -> Override | None:
        return quarantine_of(rig.ledger.read_live().overrides, "pool-0")

    async def story() -> None:
        retry = {"on": ["error", "node-failure"], "max_attempts": 20}
        await rig.apply(make_desired(pool(1), {name: task(retry=retry) for name in names}))
        await rig.until(lambda: quarantine() is not None)
        rig.faults.cannot_prepare = 0.0
        await rig.kill_manager()
        await asyncio.sleep(100)
        assert rig.hosts() == {"pool-0": InstanceState.READY}
        assert [rig.state(name) for name in names] == [RunState.PENDING] * 3
        reasons = waiting_reasons(rig.ledger.read_book(), now_ms=VirtualClock().now_ms())
        assert "(1 quarantined: 3 times in a row" in str(reasons)
        assert "`fleetform emergency lift 1` ends it" in str(reasons)
        overview = rig.ledger.read_overview()
        assert overview.hosts == {"quarantined": 1}
        assert [(one.name, one.state) for one in overview.troubled_hosts] == [
            ("pool-0", "quarantined")
        ]
        found = quarantine()
        assert found is not None
        rig.ledger.lift_overrides([found.number], who="ada", now_ms=VirtualClock().now_ms())
        rig.lives.written_elsewhere()
        await rig.until(lambda: all(rig.state(name) is RunState.DONE for name in names))

    rig.play(story())
    assert not rig.judge.violations


def test_a_host_that_loses_a_gpu_is_quarantined() -> None:
    """Its driver lists one GPU less, twice; the run that is at work there goes on."""
    rig = Rig({"run": 300.0})
    host = rig.world.hosts["pool-0"]
    host.gpus = tuple(GpuReport(number, f"gpu-{number}", "A100", 1 << 34) for number in range(2))

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"run": task()}))
        await rig.until(lambda: rig.state("run") is RunState.RUNNING)
        gpus, host.gpus = host.gpus, ()
        await asyncio.sleep(GPU_PROCESSES_SECONDS)
        host.gpus = gpus
        await asyncio.sleep(3 * GPU_PROCESSES_SECONDS)
        assert not rig.ledger.read_live().overrides
        host.gpus = gpus[:1]
        await rig.until(lambda: bool(rig.ledger.read_live().overrides))
        (found,) = rig.ledger.read_live().overrides
        assert found.sentence == (
            "quarantine of host/pool-0 by the controller:"
            " GPU 1 (A100) is lost: the driver no longer reports it"
        )
        await rig.until(lambda: rig.state("run") is RunState.DONE)
        assert len(rig.ledger.read_live().overrides) == 1

    rig.play(story())


def test_gpus_that_a_fleet_declares_are_not_missed() -> None:
    """No driver lists them, however long the host is up."""
    rig = Rig({"run": 300.0})
    host = rig.world.hosts["pool-0"]
    host.gpus = (GpuReport(0, f"{DECLARED_GPU}0", "A100", 1 << 34),)

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"run": task()}))
        await rig.until(lambda: rig.state("run") is RunState.RUNNING)
        host.gpus = ()
        await asyncio.sleep(4 * GPU_PROCESSES_SECONDS)
        assert not rig.ledger.read_live().overrides

    rig.play(story())


def test_a_hello_clears_a_suspect() -> None:
    """An agent that was started anew is given work at once."""
    names = [f"run-{number}" for number in range(3)]
    rig = Rig(dict.fromkeys(names, 1.0))
    rig.faults.cannot_prepare = 1.0

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {name: task() for name in names}))
        await rig.until(lambda: rig.hosts() == {"pool-0": InstanceState.SUSPECT})
        rig.faults.cannot_prepare = 0.0
        rig.world.kill_agent("pool-0")
        began = VirtualClock().now_ms()
        await rig.until(lambda: all(rig.state(name) is RunState.DONE for name in names))
        assert VirtualClock().now_ms() - began < 30_000

    rig.play(story())
