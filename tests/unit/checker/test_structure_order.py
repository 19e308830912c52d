"""What goes before its users, or beside its successor, is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant
from fleetform.model.live import EarlierRun, Live
from fleetform.model.plan import Permissions, Plan
from fleetform.model.run import RunState
from fleetform.spec.desired import Desired
from unit.checker.test_check import ALLOWED, edit_step, example, found, key
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume


def drop_needs(plan: Plan, step_key: str) -> Plan:
    return edit_step(plan, step_key, lambda step: replace(step, needs=()))


def removals() -> tuple[Plan, Desired, Live, Permissions]:
    """A fleet that goes, with a volume on it and a run that has it mounted."""
    user = task("user", fleets=["old"], volumes=[{"name": "spare", "path": "/in"}])
    live = ledger(
        row(fleet("old")),
        row(volume("spare", on="old", deletion_policy="snapshot")),
        row(user, RunState.RUNNING),
        row(task("anywhere"), RunState.RUNNING),
    )
    desired = tree()
    return planned(desired, live, allow_destroy=True), desired, live, ALLOWED


def test_the_fixed_order_of_removal_is_clean() -> None:
    """Runs stop, volumes go, fleets go."""
    plan, *rest = removals()
    assert {"run.stop", "volume.snapshot", "fleet.remove"} <= {step.verb for step in plan.steps}
    assert found(plan, *rest) == set()


@pytest.mark.parametrize("hasty", ["volume.snapshot:volume/spare", "fleet.remove:fleet/old"])
def test_something_goes_under_its_users(hasty: str) -> None:
    """What does not wait may go first."""
    plan, *rest = removals()
    assert found(drop_needs(plan, hasty), *rest) == {Invariant.REMOVAL_ORDERED}


def test_a_successor_that_does_not_wait() -> None:
    """What takes a place begins when it is free: a restart, an archive, a volume that moved."""
    plan, *rest = example()
    assert found(drop_needs(plan, "run.submit:run/busy"), *rest) == {Invariant.SUCCESSOR_WAITS}
    assert found(drop_needs(plan, "run.archive:run/gone"), *rest) == {Invariant.SUCCESSOR_WAITS}
    desired = tree(fleet("local"), volume("data", path="/new"))
    live = ledger(row(fleet("local")), row(volume("data")))
    moved = planned(desired, live, allow_destroy=True)
    assert found(drop_needs(moved, "volume.make:volume/data"), desired, live, ALLOWED) == {
        Invariant.SUCCESSOR_WAITS
    }


@pytest.mark.parametrize("verb", ["volume.remove", "volume.snapshot", "volume.forget"])
@pytest.mark.parametrize("archived", [False, True])
def test_data_that_goes_under_what_is_at_work(verb: str, archived: bool) -> None:
    """Nothing of the plan ends it, also where its document is in no tree any more."""
    user = task("user", volumes=[{"name": "spare", "path": "/in"}])
    desired = tree(fleet("old"))
    policy = {"volume.remove": "delete", "volume.snapshot": "snapshot"}.get(verb, "retain")
    rows = (row(fleet("old")), row(volume("spare", on="old", deletion_policy=policy)))
    # Made while nobody was at work, and read now.
    plan = planned(desired, ledger(*rows, row(user, archived=True)), allow_destroy=True)
    assert [step.verb for step in plan.steps] == [verb]
    assert found(plan, desired, ledger(*rows, row(user, archived=True)), ALLOWED) == set()
    if archived:
        live = ledger(*rows, row(user, RunState.FINISHING, archived=True))
    else:
        desired = tree(fleet("old"), task("user"))
        earlier = EarlierRun("f" * 32, '{"volumes":[{"name":"spare","path":"/in"}]}')
        live = ledger(*rows, row(task("user"), RunState.PENDING, earlier=earlier))
    assert found(plan, desired, live, ALLOWED) == {Invariant.USED_STAYS}


def test_a_fleet_that_is_forgotten_under_what_is_at_work() -> None:
    """Who names no fleet may be on it."""
    desired = replace(tree(), removed=(key("fleet/old"),))
    over = ledger(row(fleet("old")), row(task("user"), archived=True))
    plan = planned(desired, over, allow_destroy=True)
    assert found(plan, desired, over, ALLOWED) == set()
    live = ledger(row(fleet("old")), row(task("user"), RunState.RUNNING, archived=True))
    assert found(plan, desired, live, ALLOWED) == {Invariant.USED_STAYS}


def test_a_volume_of_which_nobody_says_who_uses_it() -> None:
    """Whoever began with it mounted after the plan was made would lose it at work."""
    plan, *rest = removals()
    (claim,) = (one for one in plan.predicates if one.claim == "unattached")
    assert claim.value == '["user"]'
    others = tuple(one for one in plan.predicates if one != claim)
    broken = {Invariant.UNATTACHED_PINNED}
    assert found(replace(plan, predicates=others), *rest) == broken
    told = replace(claim, value='["nobody","user"]')
    assert found(replace(plan, predicates=(*others, told)), *rest) == broken


def test_a_fleet_that_is_forgotten_and_of_which_nobody_says_who_is_on_it() -> None:
    """Who begins there between plan and apply would be nobody's."""
    desired = replace(tree(), removed=(key("fleet/old"),))
    live = ledger(row(fleet("old")))
    plan = planned(desired, live)
    (claim,) = (one for one in plan.predicates if one.claim == "at-work")
    others = tuple(one for one in plan.predicates if one != claim)
    assert found(replace(plan, predicates=others), desired, live, ALLOWED) == {
        Invariant.WORK_PINNED
    }
