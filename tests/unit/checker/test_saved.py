"""A plan from a file is judged by what is there when it is applied."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant
from fleetform.checker.saved import check_saved
from fleetform.model.drift import Drift, DriftClass, Remedy
from fleetform.model.live import LedgerStatus, Live, Work
from fleetform.model.plan import Kept, Permissions, Plan
from fleetform.model.run import RunState
from fleetform.plan.file import sealed
from fleetform.spec.desired import ResourceKey, Rules
from unit.checker.test_check import example
from unit.plan.trees import fleet, ledger, planned, row, task, tree


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
