"""What an apply of a plan waits for."""

from __future__ import annotations

from typing import Any

from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.wait_targets import ended_besides, ending, waited_for
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree

LOCAL, ONE, OTHER = fleet("local"), task("one"), task("other")


def test_the_runs_that_a_plan_starts_are_followed() -> None:
    """And no other: what is at work may take days, and a controller drives it."""
    live = ledger(row(LOCAL), row(OTHER, RunState.RUNNING), row(task("over")))
    plan = planned(tree(LOCAL, ONE, OTHER, task("over")), live)
    assert waited_for(plan) == ("one",)


def test_a_second_apply_follows_what_is_at_work() -> None:
    """Nothing differs: the first was interrupted, and its runs go on."""
    live = ledger(row(LOCAL), row(ONE), row(OTHER, RunState.RUNNING))
    assert waited_for(planned(tree(LOCAL, ONE, OTHER), live)) == ("other",)


def test_nothing_is_followed_where_all_that_differs_is_blocked() -> None:
    """A run that is at work keeps its change out until it is over: that is said at once."""
    live = ledger(row(LOCAL), row(OTHER, RunState.RUNNING))
    desired = tree(LOCAL, task("other", commands=["changed"]))
    plan = planned(desired, live)
    assert [held.change.key.name for held in plan.held] == ["other"]
    assert waited_for(plan) == ()
    assert waited_for(_scoped(desired, live, targets=("run/other",))) == ("other",)


def test_a_run_that_is_named_is_followed() -> None:
    """By `--target`, though nothing differs; the others are left to those who wait for them."""
    live = ledger(row(LOCAL), row(ONE, RunState.RUNNING), row(OTHER, RunState.RUNNING))
    desired = tree(LOCAL, ONE, OTHER, task("third"))
    assert waited_for(_scoped(desired, live, targets=("run/one",))) == ("one",)
    assert waited_for(_scoped(desired, live, replaces=("run/one",))) == ("third", "one")


def test_what_another_process_has_entered_is_followed() -> None:
    """A plan whose run `serve` has started is empty when it is made again."""
    live = ledger(row(LOCAL), row(ONE, RunState.RUNNING), row(OTHER, RunState.RUNNING))
    plan = planned(tree(LOCAL, ONE, task("other", commands=["changed"])), live)
    assert waited_for(plan, ("one",)) == ("one",)


def _scoped(desired: Any, live: Live, **scope: tuple[str, ...]) -> Plan:
    return make_plan(desired, live, permissions=Permissions(), scope=Scope(**scope), now_ms=NOW_MS)


def test_the_end_of_a_run_that_never_starts_is_waited_for() -> None:
    """A controller ends a run that is submitted as stopped; one that is archived is over."""
    plan = planned(tree(LOCAL, task("still", state="stopped")), ledger(row(LOCAL), row(ONE)))
    assert {change.key.name for change in plan.changes} == {"still", "one"}
    assert waited_for(plan) == ("still",)


def test_a_stop_that_no_controller_has_made_yet_is_waited_for() -> None:
    """The apply that wrote it was killed: the next one, without changes, ends the run."""
    stopped = task("one", state="stopped")
    plan = planned(tree(LOCAL, stopped), ledger(row(LOCAL), row(stopped, RunState.SUBMITTED)))
    assert plan.is_empty
    assert waited_for(plan) == ("one",)


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
