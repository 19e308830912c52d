from __future__ import annotations

import asyncio

import pytest

from fleetform.model.run import RunState
from fleetform.simulate.scenario import make_desired
from fleetform.wiring import applying
from fleetform.wiring.applying import exit_code
from unit.controllers.rig import Rig, pool, task


def test_a_run_that_nobody_knows_about_has_not_succeeded() -> None:
    """An apply that ends while a host is silent says so by its code."""
    rig = Rig({"one": 60})
    desired = make_desired(pool(1), {"one": task()})

    async def story() -> None:
        made = rig.plan(desired)
        await rig.apply(desired)
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        (instance,) = rig.ledger.read_live().instances
        rig.ledger.mark_instance(instance.uid, state="unreachable", message="silent", now_ms=1)
        unknown = rig.ledger.read_runs(["one"])
        assert unknown[0].run.state is RunState.UNKNOWN
        assert exit_code(made, (), unknown, detached=False) == 4
        assert exit_code(made, (), unknown, detached=True) == 0

    rig.play(story())


def test_a_moment_of_silence_ends_no_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that is started again is back within a second; only long silence is an end."""
    apply = applying._Apply.__new__(applying._Apply)
    apply._unknown_since_ms = None
    monkeypatch.setattr(applying, "SILENCE_MS", 30)
    assert apply._are_settled([RunState.DONE, None])
    assert not apply._are_settled([RunState.DONE, RunState.UNKNOWN])
    assert not apply._are_settled([RunState.RUNNING])
    assert not apply._are_settled([RunState.UNKNOWN])
    asyncio.run(asyncio.sleep(0.05))
    assert apply._are_settled([RunState.UNKNOWN])
