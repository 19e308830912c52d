"""Fields whose difference does not count: what is there stays, and is written down as it is."""

from __future__ import annotations

from typing import Any

import pytest

from fleetform.checker import check
from fleetform.model.plan import Action, Permissions, Plan, Reason, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan
from fleetform.spec.desired import Desired
from fleetform.spec.ignore_changes import kept_values
from unit.plan.trees import carry_out, fleet, ledger, row, task, tree


def planned(desired: Desired, live, **scope: Any) -> Plan:
    permissions = Permissions(allow_destroy=True, allow_restart=True)
    of = Scope(**scope)
    made = plan(desired, live, permissions=permissions, scope=of, now_ms=1)
    assert check(made, desired, live, permissions, of) == ()
    return made


@pytest.mark.parametrize("field", ["ignore", "initial"])
def test_a_difference_that_does_not_count_is_none(field):
    """The digests differ, and the plan is empty."""
    said = {field: ["env.SEED", "priority"]}
    live = ledger(row(task("one", env={"SEED": "1", "LR": "1"}, priority=3, **said)))
    desired = tree(task("one", env={"SEED": "2", "LR": "1"}, **said))
    assert planned(desired, live).changes == ()


def test_what_is_written_keeps_the_values_that_stay():
    """A change of another field carries the old values along, so that the next plan is empty."""
    live = ledger(row(fleet("local", blocks=2, ignore=["blocks"])))
    desired = tree(fleet("local", nodes=2, blocks=4, ignore=["blocks"]))
    made = planned(desired, live)
    (step,) = made.steps
    assert step.arguments["document"]["blocks"] == 2
    assert [one.path for one in made.changes[0].fields] == ["nodes"]
    after, _ = carry_out(made, live)
    assert planned(desired, after).changes == ()


def test_what_is_not_there_is_made_as_declared():
    """Nothing stays where nothing was."""
    made = planned(tree(task("one", env={"SEED": "2"}, ignore=["env"])), ledger())
    assert made.steps[0].arguments["document"]["env"] == {"SEED": "2"}


def test_initial_counts_when_it_runs_again():
    """And `ignore` does not: what is there stays, whatever else changes."""
    live = ledger(row(task("one", env={"A": "1", "B": "1"}, ignore=["env.A"], initial=["env.B"])))
    desired = tree(
        task(
            "one",
            commands=["new"],
            env={"A": "2", "B": "2"},
            ignore=["env.A"],
            initial=["env.B"],
        )
    )
    made = planned(desired, live)
    (step,) = made.steps
    assert step.verb == "run.submit"
    assert step.arguments["document"]["env"] == {"A": "1", "B": "2"}
    assert {one.path for one in made.changes[0].fields} == {"commands[0]", "env.B"}


def test_initial_counts_when_somebody_asks_for_it_anew():
    """`--replace` is a beginning."""
    live = ledger(row(task("one", env={"SEED": "1"}, initial=["env.SEED"])))
    desired = tree(task("one", env={"SEED": "2"}, initial=["env.SEED"]))
    made = planned(desired, live, replaces=("one",))
    assert made.changes[0].reasons[0] is Reason.REPLACE_ASKED
    assert made.steps[0].arguments["document"]["env"] == {"SEED": "2"}


def test_a_running_run_is_not_held_for_it():
    """A value that does not count ends nothing and waits for nobody."""
    live = ledger(row(task("one", env={"SEED": "1"}, ignore=["env"]), RunState.RUNNING))
    made = planned(tree(task("one", env={"SEED": "2"}, ignore=["env"])), live)
    assert (made.changes, made.held) == ((), ())


def test_a_value_that_does_not_count_is_no_reason_to_run_again():
    """A base changed as well: the result is stale, and the document's own change does not count."""
    before = task("one", own={"env": 1}, env={"SEED": "1", "BASE": "1"}, ignore=["env.SEED"])
    after = task("one", own={"env": 2}, env={"SEED": "2", "BASE": "2"}, ignore=["env.SEED"])
    made = planned(tree(after), ledger(row(before)))
    assert [one.action for one in made.changes] == [Action.UPDATE]
    assert Reason.INHERITED_CHANGED in made.changes[0].reasons


def test_paths_reach_into_mappings():
    """A star stands for any text of a step; what is not there is taken out."""
    declared = {"env": {"AWS_A": "new", "B": "new"}, "resources": {"cpu": 1}, "priority": 1}
    there = {"env": {"AWS_A": "old", "AWS_C": "old", "B": "old"}, "resources": {}}
    kept = kept_values(declared, there, ["env.AWS_*", "resources.cpu", "priority", "tags.x"])
    assert kept == {"env": {"AWS_A": "old", "AWS_C": "old", "B": "new"}}
