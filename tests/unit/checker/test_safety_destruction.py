"""What is protected is ended by no name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from fleetform.checker import Invariant, check
from fleetform.model.live import Work
from fleetform.model.plan import Predicate, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.serialize import sealed
from unit.checker.test_check import ALLOWED, found, key
from unit.plan.test_scope import hosts_of
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree


def test_a_protected_run_that_is_stopped() -> None:
    """`state: stopped` ends its work as well as a removal would."""
    stopped = task("guarded", state="stopped")
    live = ledger(row(task("guarded"), RunState.RUNNING))
    desired = tree(stopped)
    plan = planned(desired, live, allow_destroy=True)
    assert found(plan, desired, live, ALLOWED) == set()
    guarded = replace(live.resources[key("run/guarded")], protected=True)
    live = replace(live, resources={guarded.key: guarded})
    assert found(plan, desired, live, ALLOWED) == {Invariant.PROTECTED_STAYS}
    assert planned(desired, live, allow_destroy=True).is_empty


def test_a_fleet_under_a_protected_run() -> None:
    """A fleet that goes takes with it what is running on its hosts."""
    run, old = task("guarded", protect=True), fleet("old")
    live = ledger(row(run, RunState.RUNNING), row(old))
    plan = planned(tree(run), live, allow_destroy=True)
    assert found(plan, tree(run), live, ALLOWED) == set()
    live = replace(live, work=(Work("guarded", "old", 1, 0),))
    assert Invariant.PROTECTED_STAYS in found(plan, tree(run), live, ALLOWED)


def test_runs_that_end_with_their_fleet() -> None:
    """The second reader counts who is at work on hosts that go, by the names of the ledger."""
    tasks = [task(f"t{number}") for number in range(6)]
    live = ledger(row(fleet("old")), *(row(one, RunState.RUNNING) for one in tasks))
    plan = planned(tree(*tasks), live, allow_destroy=True)
    assert found(plan, tree(*tasks), live, ALLOWED) == set()
    live = replace(live, work=tuple(Work(one.key.name, "old", 1, 0) for one in tasks))
    assert Invariant.WITHIN_BUDGET in found(plan, tree(*tasks), live, ALLOWED)
    enough = replace(ALLOWED, allow_deletes=6)
    assert Invariant.WITHIN_BUDGET not in found(plan, tree(*tasks), live, enough)


def test_new_work_on_a_fleet_that_goes() -> None:
    """Who is running on it is pinned by name: no fewer, and none that is not there."""
    run, old = task("busy"), fleet("old")
    live = ledger(row(run, RunState.RUNNING), row(old))
    live = replace(live, work=(Work("busy", "old", 1, 0),))
    plan = planned(tree(run), live, allow_destroy=True)
    assert found(plan, tree(run), live, ALLOWED) == set()
    others = tuple(one for one in plan.predicates if one.claim != "at-work")
    for said in ("", "[]", '["busy","other"]'):
        claim = Predicate("at-work", key("fleet/old"), said)
        claimed = replace(plan, predicates=(*others, claim) if said else others)
        assert found(claimed, tree(run), live, ALLOWED) == {Invariant.WORK_PINNED}


@pytest.mark.parametrize("said", ["", '["busy"]'])
def test_new_work_on_a_fleet_that_is_let_go(said: str) -> None:
    """It ends nobody, and who is at work there would be nobody's: that is pinned as well."""
    live = ledger(row(fleet("old")), row(task("busy"), RunState.SUBMITTED))
    desired = replace(tree(task("busy")), removed=(key("fleet/old"),))
    plan = planned(desired, live)
    assert found(plan, desired, live, ALLOWED) == set()
    others = tuple(one for one in plan.predicates if one.claim != "at-work")
    claims = (Predicate("at-work", key("fleet/old"), said),) if said else ()
    claimed = replace(plan, predicates=(*others, *claims))
    assert found(claimed, desired, live, ALLOWED) == {Invariant.WORK_PINNED}


@pytest.mark.parametrize(
    "said", ["", '["a"]', '{"hosts":["old-1"],"runs":["a"]}', '{"hosts":["old-0"],"runs":["b"]}']
)
def test_new_work_on_a_single_host_that_makes_room(said: str) -> None:
    """Who is at work on just that host is pinned, and on no other."""
    old, runs = fleet("old", nodes=2, update={"strategy": "recreate"}), (task("a"), task("b"))
    live = replace(
        ledger(row(old), *(row(one, RunState.RUNNING) for one in runs)),
        instances=hosts_of("old", 2),
        work=tuple(
            Work(one.key.name, "old", 1, 0, hosts=(f"old-{number}",))
            for number, one in enumerate(runs)
        ),
    )
    desired, scope = tree(old, *runs), Scope(replaces=("host/old-0",))
    plan = make_plan(desired, live, permissions=ALLOWED, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, ALLOWED, scope) == ()
    others = tuple(one for one in plan.predicates if one.claim != "at-work")
    claims = (Predicate("at-work", key("fleet/old"), said),) if said else ()
    claimed = sealed(replace(plan, predicates=(*others, *claims)))
    (violation,) = check(claimed, desired, live, ALLOWED, scope)
    assert violation.invariant is Invariant.WORK_PINNED


@pytest.mark.parametrize("said", [{"sharing": "exact"}, {"sharing": "exact", "blocks": 1}])
def test_a_division_that_is_written_down_makes_no_other_hosts(said: dict[str, Any]) -> None:
    """Where a single host is asked for besides, it is that one alone that ends what it has."""
    update = {"update": {"strategy": "recreate"}}
    before, after = fleet("old", nodes=2, **update), fleet("old", nodes=2, **update, **said)
    runs = task("a"), task("b")
    live = replace(
        ledger(row(before), *(row(one, RunState.RUNNING) for one in runs)),
        instances=hosts_of("old", 2),
        work=tuple(
            Work(one.key.name, "old", 1, 0, hosts=(f"old-{number}",))
            for number, one in enumerate(runs)
        ),
    )
    desired, scope = tree(after, *runs), Scope(replaces=("host/old-0",))
    plan = make_plan(desired, live, permissions=ALLOWED, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, ALLOWED, scope) == ()
    assert [one.stake.runs for one in plan.changes if one.stake is not None] == [("a",)]
