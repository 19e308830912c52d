"""A freeze holds every plan, a stop what would begin."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.override import OverrideKind
from fleetform.model.plan import HeldBy
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey, Rules
from unit.plan.blockers.guards import held_by, make, override
from unit.plan.trees import NOW_MS, fleet, ledger, row, task, tree


def test_a_freeze_holds_everything_and_names_its_author() -> None:
    """Also what is only made, and the rules; what was over before is not told of."""
    over = override(OverrideKind.PAUSE, until_ms=NOW_MS)
    freeze = override(OverrideKind.FREEZE)
    live = replace(ledger(row(task("old"))), overrides=(over, freeze))
    plan = make(tree(fleet("local"), rules=Rules(delete_count=1)), live)
    assert plan.is_empty
    assert set(held_by(plan)) == {"environment/lab", "fleet/local", "run/old"}
    assert {one.detail for one in plan.held} == {"emergency freeze by ada@node1: smoke"}
    assert plan.overrides == (freeze,)


def test_a_stop_lets_through_what_ends() -> None:
    """The commit that makes it permanent is applied while it holds; what begins is held."""
    live = replace(
        ledger(row(task("a"), RunState.RUNNING), row(task("b"), RunState.RUNNING)),
        overrides=(override(OverrideKind.STOP, "run/*"),),
    )
    plan = make(tree(task("a", state="stopped"), task("c")), live)
    assert {str(one.key) for one in plan.changes} == {"run/a", "run/b"}
    assert held_by(plan) == {"run/c": HeldBy.OVERRIDE}
    assert plan.held[0].cure == "`fleetform emergency lift 1`"


def test_a_stop_goes_with_a_name_that_nothing_has_yet() -> None:
    """A run that was stopped before it was ever applied does not begin by being called otherwise."""
    live = replace(ledger(), overrides=(override(OverrideKind.STOP, "run/prep"),))
    moved = ((ResourceKey("run", "prep"), ResourceKey("run", "train")),)
    assert held_by(make(replace(tree(task("train")), moved=moved), live)) == {
        "run/train": HeldBy.OVERRIDE
    }
    # Where something has the new name already, nothing is renamed.
    there = replace(live, resources=ledger(row(task("train"), RunState.DONE)).resources)
    again = replace(tree(task("train", rerun=1)), moved=moved)
    assert held_by(make(again, there)) == {}
