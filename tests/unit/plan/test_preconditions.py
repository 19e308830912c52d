"""What a plan pins is named as the ledger names it when the plan is carried out."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import check
from fleetform.model.live import Work
from fleetform.model.plan import Permissions
from fleetform.model.predicates import AtWork
from fleetform.model.run import RunState
from fleetform.plan.preconditions import failing
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, task, tree


def test_a_tombstone_that_gives_way_works_under_its_old_name() -> None:
    """Its name goes to another with this plan, and until then the ledger knows it by that."""
    gone = row(task("new", fleets=["f"]), RunState.FINISHING, archived=True)
    live = replace(ledger(row(fleet("f")), row(task("old")), gone), work=(Work("new", "f", 1, 0),))
    moved = ((ResourceKey("run", "old"), ResourceKey("run", "new")),)
    desired = replace(tree(task("new")), moved=moved)
    plan = planned(desired, live, allow_destroy=True)
    (claim,) = (one for one in plan.predicates if one.claim == "at-work")
    assert AtWork.of(claim.value).runs == {"new"}
    assert failing(plan, live) == ()
    assert check(plan, desired, live, Permissions(allow_destroy=True)) == ()
