"""What a changed queue leads to."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import Invariant
from fleetform.model.plan import Action, HeldBy
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from unit.checker.test_check import ALLOWED, found
from unit.plan.trees import fleet, ledger, planned, queue, row, task, tree

LOCAL, OTHER = fleet("local"), fleet("other")
BATCH = queue("batch", "local")
TRAIN = task("train", queue="batch")


def test_other_fleets_are_an_update_in_place() -> None:
    """A change of a queue's fleets changes the queue and none of its runs, wherever they stand."""
    wider = queue("batch", "local", "other")
    for state in (RunState.SUBMITTED, RunState.RUNNING, RunState.DONE):
        live = ledger(row(LOCAL), row(OTHER), row(BATCH), row(TRAIN, state))
        (change,) = planned(tree(LOCAL, OTHER, wider, TRAIN), live).changes
        assert (change.key, change.action) == (BATCH.key, Action.UPDATE)
        assert not change.destructive
        assert [step.verb for step in change.steps] == ["queue.set"]


def test_another_queue_is_an_update_in_place() -> None:
    """A run that names another queue is the same execution."""
    moved = task("train")
    live = ledger(row(LOCAL), row(BATCH), row(TRAIN, RunState.DONE))
    (change,) = planned(tree(LOCAL, BATCH, moved), live).changes
    assert [step.verb for step in change.steps] == ["run.update"]


def test_it_is_removed_when_no_run_names_it() -> None:
    """Removing a queue that no run refers to ends nothing and needs no permission."""
    live = ledger(row(LOCAL), row(BATCH))
    (change,) = planned(tree(LOCAL), live).changes
    assert (change.action, change.destructive) == (Action.DELETE, False)


def test_it_stays_while_a_run_that_stays_refers_to_it() -> None:
    """A run whose own change is held keeps its queue."""
    live = ledger(row(LOCAL), row(BATCH), row(TRAIN, RunState.RUNNING))
    changed = task("train", commands=["new"])
    plan = planned(tree(LOCAL, changed), live)
    assert plan.changes == ()
    assert {one.change.key: one.by for one in plan.held} == {
        TRAIN.key: HeldBy.RUNNING_WORK,
        BATCH.key: HeldBy.DEPENDENCY,
    }


def test_it_keeps_its_fleets() -> None:
    """A queue that stays because of a run keeps the fleets that it leads to."""
    live = ledger(row(LOCAL), row(OTHER), row(BATCH), row(TRAIN, RunState.RUNNING))
    desired = tree(OTHER, task("train", commands=["new"], fleets=["other"]))
    plan = planned(desired, live, allow_destroy=True)
    assert ResourceKey("fleet", "local") in {one.change.key for one in plan.held}


def test_the_checker_finds_a_queue_that_goes_from_under_its_runs() -> None:
    """A plan that removes a queue to which a row still refers breaks an invariant."""
    live = ledger(row(LOCAL), row(BATCH))
    desired = tree(LOCAL)
    plan = planned(desired, live)
    there = replace(live, resources={**live.resources, TRAIN.key: row(TRAIN)})
    assert Invariant.REFERRED_TO_STAYS in found(plan, tree(LOCAL, TRAIN), there, ALLOWED)
