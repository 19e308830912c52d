"""What a changed fleet leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.plan import Action, HeldBy, Reason
from unit.plan.trees import declare, fleet, ledger, planned, row, tree


def test_a_new_fleet_names_its_instances() -> None:
    """Instances are named by number, so that two plans mean the same hosts."""
    (change,) = planned(tree(fleet("local", nodes=2)), ledger()).changes
    (step,) = change.steps
    assert step.verb == "fleet.make"
    assert step.arguments["instances"] == [
        {"name": "local-0", "number": 0},
        {"name": "local-1", "number": 1},
    ]


@pytest.mark.parametrize(
    ("nodes", "count"),
    [
        (None, 1),
        ({"min": 0, "target": 0, "max": 2}, 0),
        ({"min": 1, "target": 3, "max": None}, 3),
        ({"min": 2, "max": 2}, 2),
    ],
)
def test_how_many_hosts(nodes: dict[str, int | None] | None, count: int) -> None:
    """The target, else the least, else one."""
    document = {"type": "fleet", "local": {}} | ({} if nodes is None else {"nodes": nodes})
    (change,) = planned(tree(declare("fleet", "local", document)), ledger()).changes
    assert len(change.steps[0].arguments["instances"]) == count


def test_everything_changes_in_place() -> None:
    """Fewer hosts and another sharing end no work: a host goes once nothing runs on it."""
    new = fleet("local", nodes=1, sharing="whole")
    (change,) = planned(tree(new), ledger(row(fleet("local", nodes=3)))).changes
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.CONTROL_CHANGED,))
    assert [step.verb for step in change.steps] == ["fleet.update"]
    assert not change.destructive


def test_removal_is_destructive() -> None:
    """A fleet's hosts go only where that is allowed."""
    live = ledger(row(fleet("local")))
    plan = planned(tree(), live)
    assert [one.by for one in plan.held] == [HeldBy.DESTRUCTIVE]
    (change,) = planned(tree(), live, allow_destroy=True).changes
    assert [step.verb for step in change.steps] == ["fleet.remove"]


def test_a_fleet_that_an_apply_left_half_done() -> None:
    """Declared as it was before, it is asked for again: hosts may have gone on the way."""
    failed = replace(row(fleet("f", nodes=2)), digest="", state="failed")
    (change,) = planned(tree(fleet("f", nodes=2)), ledger(failed)).changes
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.UNFINISHED,))
    assert [step.verb for step in change.steps] == ["fleet.update"]


def test_a_fleet_that_was_never_made_in_whole_has_no_earlier_values() -> None:
    """What the plan shows of it is that its creation is not finished, and no field that changed."""
    begun = replace(row(fleet("f", nodes=2)), digest="", document="{}", state="failed")
    (change,) = planned(tree(fleet("f", nodes=3)), ledger(begun)).changes
    assert (change.reasons, change.fields) == ((Reason.UNFINISHED,), ())
    assert [step.verb for step in change.steps] == ["fleet.update"]
