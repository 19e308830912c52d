"""What was asked for is what is changed, and nothing is in two places."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import Invariant, check
from fleetform.model.plan import Deferred, Scope
from fleetform.plan.planner import plan as make_plan
from unit.checker.test_check import ALLOWED, example, found, key
from unit.plan.trees import NOW_MS, fleet, ledger, task, tree


def test_what_is_left_and_done() -> None:
    """What is left for another plan is not carried out by this one."""
    plan, *rest = example()
    change = next(one for one in plan.changes if one.key == key("run/new"))
    both = replace(plan, deferred=(Deferred(change, "it is not among the targets"),))
    assert Invariant.LEFT_IS_LEFT in found(both, *rest)


def test_a_change_beside_the_targets() -> None:
    """A target brings along what it needs, and nothing more."""
    desired = tree(fleet("local"), task("asked", fleets=["local"]), task("other"))
    live, scope = ledger(), Scope(targets=("run/asked",))
    made = make_plan(desired, live, permissions=ALLOWED, scope=scope, now_ms=NOW_MS)
    assert {str(one.key) for one in made.changes} == {"fleet/local", "run/asked"}
    assert check(made, desired, live, ALLOWED, scope) == ()
    whole = make_plan(desired, live, permissions=ALLOWED, now_ms=NOW_MS)
    details = [one.detail for one in check(whole, desired, live, ALLOWED, scope)]
    assert details == ["run/other is changed beside the targets"]
