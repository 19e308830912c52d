from __future__ import annotations

from fleetform.api.waiting import waiting_reasons
from fleetform.model.instance import InstanceState
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
