"""What a plan and its apply say to a script."""

from __future__ import annotations

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
