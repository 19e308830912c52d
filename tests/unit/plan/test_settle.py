"""What a plan says beyond its changes."""

from __future__ import annotations

import pytest

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, task, tree


@pytest.mark.parametrize(
    ("state", "listed"),
    [
        (RunState.FAILED, True),
        (RunState.ABORTED, True),
        (RunState.UNSCHEDULABLE, True),
        (RunState.STOPPED, True),
        (RunState.DONE, False),
        (RunState.RUNNING, False),
    ],
)
def test_failures_stay_visible(state: RunState, listed: bool) -> None:
    """A run that ended badly is in every plan until something is done about it."""
    plan = planned(tree(task("train")), ledger(row(task("train"), state, message="exit code 1")))
    assert [(one.key.name, one.state) for one in plan.settled] == (
        [("train", state.value)] if listed else []
    )


def test_an_end_that_was_asked_for_is_no_failure() -> None:
    """`state: stopped` and a stopped run agree."""
    stopped = task("train", state="stopped")
    assert planned(tree(stopped), ledger(row(stopped, RunState.STOPPED))).settled == ()


def test_what_the_plan_reruns_or_removes_is_settled_no_more() -> None:
    """Something is being done about it."""
    live = ledger(row(task("a"), RunState.FAILED), row(task("b"), RunState.FAILED))
    plan = planned(tree(task("a", commands=["fixed"])), live)
    assert plan.settled == ()
    assert len(plan.changes) == 2


def test_work_under_way_is_progress_and_no_change() -> None:
    """A second plan while runs run and hosts come is empty."""
    live = ledger(row(fleet("local")), row(task("train"), RunState.RUNNING), row(task("done")))
    coming = Instance("i", "local-0", "local", 0, InstanceState.PROVISIONING)
    live = type(live)(
        **{name: getattr(live, name) for name in live.__slots__ if name != "instances"},
        instances=(coming,),
    )
    plan = planned(tree(fleet("local"), task("train"), task("done")), live)
    assert plan.is_empty
    assert plan.progressing == (ResourceKey("fleet", "local"), ResourceKey("run", "train"))
