"""What has become of a plan since it was made."""

from __future__ import annotations

import json
from dataclasses import replace

from fleetform.model.live import Live, Work
from fleetform.model.plan import Plan
from fleetform.model.run import RunState
from fleetform.plan.preconditions import failing, undone
from fleetform.spec.desired import ResourceKey, Rules
from unit.plan.trees import carry_out, fleet, ledger, planned, row, task, tree, volume


def changed(live: Live, address: str, **more: object) -> Live:
    key = ResourceKey(*address.split("/"))
    return replace(live, resources={**live.resources, key: replace(live.resources[key], **more)})


def sentences(plan: Plan, live: Live) -> list[tuple[str, str]]:
    return [(str(one.key), one.detail) for one in failing(plan, live)]


OLD, NEW = task("train", priority=5), task("train", priority=9, commands=["new"])


def test_what_is_as_it_was_fails_nowhere():
    """Also when all else has changed."""
    live = ledger(row(OLD), row(task("other")))
    plan = planned(tree(NEW, task("other"), task("new")), live)
    assert failing(plan, live) == ()
    assert failing(plan, changed(live, "run/other", generation=9)) == ()


def test_what_was_changed_is_named_with_its_fields():
    """The row's document now against the one it was planned against."""
    live = ledger(row(OLD))
    plan = planned(tree(NEW), live)
    now = changed(
        live, "run/train", generation=4, document=json.dumps({**OLD.document, "priority": 7})
    )
    (one,) = failing(plan, now)
    assert (str(one.key), one.detail) == ("run/train", "was changed since the plan")
    assert [(field.path, field.before, field.after) for field in one.fields] == [("priority", 5, 7)]


def test_what_is_held_has_to_be_as_it_was_where_there_is_no_change_beside_it():
    """Such a plan has nothing to carry out, and its reasons were those of another row."""
    live = ledger(row(task("train"), RunState.RUNNING))
    plan = planned(tree(task("train", commands=["new"])), live)
    assert (plan.changes, [str(one.change.key) for one in plan.held]) == ((), ["run/train"])
    assert failing(plan, live) == ()
    assert sentences(plan, changed(live, "run/train", generation=9)) == [
        ("run/train", "was changed since the plan")
    ]
    assert sentences(plan, replace(live, resources={})) == [("run/train", "no longer exists")]


def test_what_came_went_or_started_is_named():
    """Each claim has its words, and one resource is named once."""
    live = ledger(row(OLD), row(task("waits"), RunState.PENDING))
    plan = planned(tree(NEW, task("waits", commands=["new"]), task("new")), live)
    now = ledger(row(task("waits"), RunState.RUNNING), row(task("new")))
    assert sentences(plan, now) == [
        ("run/new", "exists now"),
        ("run/train", "no longer exists"),
        ("run/waits", "has started"),
    ]


def test_a_result_that_came_since_is_no_free_name():
    """What was created meanwhile, has ended and left the tree would be run a second time."""
    plan = planned(tree(task("new")), ledger())
    now = ledger(row(task("new"), RunState.DONE, archived=True))
    assert sentences(plan, now) == [("run/new", "has a result now")]


def test_a_fleet_that_got_work_since_is_named():
    """Who agreed to the end of one run has not agreed to that of another."""
    live = ledger(
        row(fleet("old")), row(task("one"), RunState.RUNNING), row(task("two"), RunState.RUNNING)
    )
    live = replace(live, work=(Work("one", "old", 1, 0),))
    plan = planned(tree(task("one"), task("two")), live, allow_destroy=True)
    assert failing(plan, live) == ()
    assert failing(plan, replace(live, work=())) == ()
    now = replace(live, work=(*live.work, Work("two", "old", 1, 0)))
    assert sentences(plan, now) == [("fleet/old", "has run/two running on it now")]


def test_a_fleet_that_is_let_go_got_work_since():
    """Its hosts stay up; whoever began there would be nobody's, and nobody was told of it."""
    live = ledger(row(fleet("old")), row(task("one"), RunState.SUBMITTED))
    desired = replace(tree(task("one")), removed=(ResourceKey("fleet", "old"),))
    plan = planned(desired, live)
    assert [step.verb for step in plan.steps] == ["fleet.forget"]
    assert failing(plan, live) == ()
    now = ledger(row(fleet("old")), row(task("one"), RunState.RUNNING))
    now = replace(now, work=(Work("one", "old", 1, 0),))
    assert sentences(plan, now) == [("fleet/old", "has run/one running on it now")]


def test_another_ledger_is_named_alone():
    """Nothing else can be said of what another ledger knows."""
    live = ledger(row(OLD))
    plan = planned(tree(NEW), live)
    (one,) = failing(plan, replace(live, epoch=3))
    assert one.key is None
    assert "epoch 2" in one.detail


def test_an_outcome_stands_until_it_is_undone():
    """Right after, everything stands; what is changed or removed then is named."""
    live = ledger(row(OLD), row(task("over")), row(fleet("old")))
    desired = tree(NEW, fleet("local"), volume("data"), rules=Rules(delete_count=7))
    plan = planned(desired, live, allow_destroy=True)
    after, _ = carry_out(plan, live)
    assert undone(plan, after) == ()
    gone = {key: one for key, one in after.resources.items() if key.name != "local"}
    later = replace(after, resources=gone, rules=Rules())
    assert [str(key) for key in undone(plan, later)] == ["environment/lab", "fleet/local"]
    later = changed(after, "run/train", digest="other")
    assert [str(key) for key in undone(plan, later)] == ["run/train"]


def test_a_volume_that_somebody_uses_since_is_named():
    """Nobody was at work with it when the plan was made, so nobody has agreed to that loss."""
    user = task("train", volumes=[{"name": "data", "path": "/d"}])
    rows = (row(fleet("local")), row(volume("data", deletion_policy="delete")))
    desired = tree(fleet("local"), volume("data", path="/new", deletion_policy="delete"), user)
    waiting = ledger(*rows, row(user, RunState.SUBMITTED))
    plan = planned(desired, waiting, allow_destroy=True)
    assert [one.value for one in plan.predicates if one.claim == "unattached"] == ["[]"]
    assert failing(plan, waiting) == ()
    now = ledger(*rows, row(user, RunState.RUNNING))
    assert sentences(plan, now) == [("volume/data", "is mounted by the running run/train now")]


def test_whom_the_plan_ends_may_have_the_volume_mounted():
    """Their end comes first, and the data goes after it."""
    user = task("train", volumes=[{"name": "data", "path": "/d"}])
    live = ledger(row(fleet("local")), row(volume("data")), row(user, RunState.RUNNING))
    plan = planned(tree(fleet("local")), live, allow_destroy=True)
    assert [one.value for one in plan.predicates if one.claim == "unattached"] == ['["train"]']
    assert failing(plan, live) == ()
