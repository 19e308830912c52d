"""What a plan and its apply say to a script."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.run import RunState
from fleetform.plan.exit import exit_code, exit_code_after
from fleetform.simulate.scenario import make_desired
from unit.controllers.rig import Rig, pool, task
from unit.plan.trees import fleet, ledger, planned, row, tree
from unit.plan.trees import task as declared

LOCAL = fleet("local")
CONVERGED = planned(tree(LOCAL), ledger(row(LOCAL)))
HELD = planned(tree(), ledger(row(LOCAL)))
FAILED = planned(
    tree(LOCAL, declared("bad")), ledger(row(LOCAL), row(declared("bad"), RunState.FAILED))
)


@pytest.mark.parametrize(("plan", "code"), [(CONVERGED, 0), (HELD, 3), (FAILED, 4)])
def test_an_apply_says_what_its_plan_says(plan, code) -> None:
    """What is held or had failed before is so after it; only a step that fails comes first."""
    assert exit_code(plan, detailed=True) == code
    assert exit_code_after(plan, (), (), detached=False) == code
    assert exit_code_after(plan, ("no space",), (), detached=False) == 1


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
        assert exit_code_after(made, (), unknown, detached=False) == 4
        assert exit_code_after(made, (), unknown, detached=True) == 0

    rig.play(story())


def test_what_was_removed_and_is_at_work_still_has_not_ended() -> None:
    """Once it has, it ended as it was to."""
    rig = Rig({"one": 60})
    gone = make_desired(pool(1), {})

    async def story() -> None:
        await rig.apply(make_desired(pool(1), {"one": task()}))
        await rig.until(lambda: rig.state("one") is RunState.RUNNING)
        made = rig.plan(gone)
        await rig.apply(gone)
        await rig.until(lambda: rig.state("one") is RunState.TERMINATED)
        (over,) = rig.ledger.read_runs(["one"])
        assert over.archived
        assert exit_code_after(made, (), (over,), detached=False) == 0
        # Hosts of this rig end work at once, so this is what it was a moment before.
        ending = replace(over, run=replace(over.run, state=RunState.FINISHING))
        assert exit_code_after(made, (), (ending,), detached=False) == 4

    rig.play(story())
