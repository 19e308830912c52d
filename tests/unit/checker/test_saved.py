"""A plan from a file is judged by what is there when it is applied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant
from fleetform.checker.saved import check_saved
from fleetform.model.drift import Drift, DriftClass, Remedy
from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, Work
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import Kept, Permissions, Plan, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.serialize import sealed
from fleetform.spec.desired import ResourceKey, Rules
from unit.checker.test_check import example
from unit.plan.trees import NOW_MS, element, fleet, ledger, planned, row, task, tree, volume


def kept(plan: Plan, **allowed: bool) -> Plan:
    return sealed(replace(plan, kept=Kept("1" * 32, 1, "me", Permissions(**allowed))))


def broken(plan: Plan, live: Live) -> set[Invariant]:
    return {one.invariant for one in check_saved(plan, live)}


def test_what_was_right_and_stays_as_it_was_is_right() -> None:
    """The whole example of the checker passes again, without its tree."""
    plan, _desired, live, _permissions = example()
    assert broken(kept(plan, allow_destroy=True, allow_restart=True), live) == set()


def test_one_of_before_the_first_ledger_is_right() -> None:
    """It names no ledger; that what it makes is absent says all."""
    nothing = replace(ledger(), ledger_id="", epoch=0)
    plan = planned(tree(fleet("local"), task("a")), nothing)
    assert broken(kept(plan), ledger()) == set()


@pytest.fixture
def removal() -> tuple[Plan, Live]:
    """A plan that ends running work, by permission."""
    live = ledger(row(task("busy"), RunState.RUNNING))
    return planned(tree(), live, allow_destroy=True), live


def test_permissions_are_those_that_it_was_made_with(removal) -> None:
    """Whoever made it was allowed to destroy; without that it would not be carried out."""
    plan, live = removal
    assert broken(kept(plan, allow_destroy=True), live) == set()
    assert Invariant.DESTRUCTION_PERMITTED in broken(kept(plan), live)


def test_what_was_protected_meanwhile_stays(removal) -> None:
    """Protection counts when it is applied."""
    plan, live = removal
    key = ResourceKey("run", "busy")
    now = replace(live, resources={key: replace(live.resources[key], protected=True)})
    assert Invariant.PROTECTED_STAYS in broken(kept(plan, allow_destroy=True), now)


def test_the_budget_is_that_of_the_rules_last_applied() -> None:
    """Rules that were tightened meanwhile hold what was within them."""
    rows = [row(task(f"r{number}"), RunState.RUNNING) for number in range(4)]
    live = ledger(*rows)
    plan = planned(tree(), live, allow_destroy=True)
    tight = replace(live, rules=Rules(delete_count=1))
    assert broken(kept(plan, allow_destroy=True), live) == set()
    assert Invariant.WITHIN_BUDGET in broken(kept(plan, allow_destroy=True), tight)


def test_a_recovering_ledger_carries_out_nothing(removal) -> None:
    """Also not what was right before it was lost."""
    plan, live = removal
    now = replace(live, status=LedgerStatus.RECOVERING)
    assert Invariant.RECOVERING_CHANGES_NOTHING in broken(kept(plan, allow_destroy=True), now)


def test_a_protected_run_that_has_lost_its_host_keeps_nothing() -> None:
    """Whoever looked when the plan was made looks again; without that it is at work still."""
    run, old = task("train", protect=True), fleet("old")
    gone = Drift(
        old.key, "host", DriftClass.ENFORCED, Remedy.APPLY, "there", "gone", part="old-0"
    )  # fmt: skip
    live = replace(
        ledger(row(run, RunState.RUNNING), row(old)),
        work=(Work("train", "old", 1, 0, hosts=("old-0",)),),
    )
    seen = replace(live, drift=(gone,))
    desired = tree(run, fleet("old", blocks=2, update={"strategy": "recreate"}))
    plan = kept(planned(desired, seen, allow_destroy=True), allow_destroy=True)
    assert broken(plan, seen) == set()
    assert Invariant.PROTECTED_STAYS in broken(plan, live)


def test_what_a_target_needs_comes_along_from_a_file_too() -> None:
    """A run that waits for another, its fleet and its volume: what they need is beside no target."""
    up = task("up", volumes=[{"name": "data", "path": "/data"}])
    down = task("down", depends_on={"runs": [{"run": "up"}]}, upstream=["up"])
    desired = tree(fleet("local"), volume("data"), up, down)
    live = ledger(row(fleet("other")))
    scope = Scope(targets=("run/down",))
    plan = make_plan(desired, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert {one.key.name for one in plan.changes} == {"local", "data", "up", "down"}
    assert broken(kept(plan), live) == set()


def test_what_a_held_target_needs_comes_along_too() -> None:
    """The target begins under no emergency stop; that its fleet is made is right all the same."""
    stop = Override(1, OverrideKind.STOP, "run/train", "why", "me", NOW_MS)
    live = replace(ledger(row(fleet("other"))), overrides=(stop,))
    scope = Scope(targets=("run/train",))
    desired = tree(fleet("local"), task("train", fleets=["local"]))
    plan = make_plan(desired, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert [one.key.name for one in plan.changes] == ["local"]
    assert [one.change.key.name for one in plan.held] == ["train"]
    assert broken(kept(plan), live) == set()


def test_a_sweep_may_be_renamed_and_changed_at_once() -> None:
    """One of its values is another one, and one goes: they are renamed before."""
    before = [element("ss", lr=lr) for lr in (1, 2)]
    live = ledger(*(row(one) for one in before))
    moved = ((ResourceKey("run", "ss"), ResourceKey("run", "tt")),)
    desired = replace(tree(element("tt", lr=1), element("tt", lr=3)), moved=moved)
    plan = planned(desired, live)
    assert plan.changes
    assert broken(kept(plan), live) == set()
