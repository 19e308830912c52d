"""What an apply of a plan waits for."""

from __future__ import annotations

from fleetform.model.plan import Permissions, Scope
from fleetform.model.run import RunState
from fleetform.plan.awaited import ended_besides, ending, waited_for
from fleetform.plan.planner import plan as make_plan
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree

LOCAL, ONE, OTHER = fleet("local"), task("one"), task("other")


def test_runs_that_begin_and_those_under_way_are_waited_for() -> None:
    """In the order of the plan; what is over already is not."""
    live = ledger(row(LOCAL), row(OTHER, RunState.RUNNING), row(task("over")))
    plan = planned(tree(LOCAL, ONE, OTHER, task("over")), live)
    assert waited_for(plan) == ("one", "other")


def test_what_was_not_asked_for_is_not_waited_for() -> None:
    """Whoever targets one run leaves the others to those who wait for them."""
    live = ledger(row(LOCAL), row(OTHER, RunState.RUNNING))
    scope = Scope(targets=("run/one",))
    desired = tree(LOCAL, ONE, OTHER)
    plan = make_plan(desired, live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert waited_for(plan) == ("one",)


def test_nobody_waits_for_what_stands_still() -> None:
    """A run that is submitted as stopped has no end to wait for, and one that is archived had its."""
    plan = planned(tree(LOCAL, task("still", state="stopped")), ledger(row(LOCAL), row(ONE)))
    assert {change.key.name for change in plan.changes} == {"still", "one"}
    assert waited_for(plan) == ()


def test_an_end_that_holds_a_change_is_waited_for() -> None:
    """By the run's uid: its document has left the tree, or is another one's by now."""
    gone = row(ONE, RunState.FINISHING, archived=True)
    plan = planned(tree(LOCAL, ONE), ledger(row(LOCAL), gone))
    assert {str(uid): str(key) for uid, key in ending(plan).items()} == {gone.uid: "run/one"}


def test_the_end_of_what_is_removed_is_waited_for() -> None:
    """By its uid: once it has left the tree, no outcome of its name tells of it."""
    working = row(ONE, RunState.RUNNING)
    plan = planned(tree(LOCAL), ledger(row(LOCAL), working), allow_destroy=True)
    assert {str(uid): str(key) for uid, key in ended_besides(plan).items()} == {
        working.uid: "run/one"
    }
