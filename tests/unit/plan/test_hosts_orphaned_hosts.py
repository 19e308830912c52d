"""A fleet does not take the names of hosts that were let go, unless it takes those hosts."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import check
from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import WHOLE, Action, HeldBy, Permissions, Plan
from fleetform.spec.desired import Declared, Desired, ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, tree

KEY = ResourceKey("fleet", "local")
LOCAL = fleet("local")


def let_go(*rows: LiveResource) -> Live:
    return replace(
        ledger(*rows), released_hosts=frozenset({"i-0"}), released_host_names=frozenset({"local-0"})
    )


def importing(*declared: Declared) -> Desired:
    return replace(tree(*declared), imports=(KEY,))


def sound(plan: Plan, desired: Desired, live: Live) -> bool:
    return not check(plan, desired, live, Permissions(), WHOLE)


def test_a_fleet_with_the_name_of_a_host_that_is_up_is_held() -> None:
    """By the plan, with the way out: the machine would refuse it, and leave half a fleet."""
    plan = planned(tree(LOCAL), let_go())
    assert not plan.changes
    (held,) = plan.held
    assert held.by is HeldBy.DEPENDENCY
    assert held.detail == "host local-0 was released and still runs under that name"
    assert "`import: [fleet/local]`" in held.cure


def test_other_names_are_nobodys() -> None:
    """Hosts of another name are made beside those that were let go."""
    plan = planned(tree(fleet("other")), let_go())
    assert [change.action for change in plan.changes] == [Action.CREATE]


def test_an_import_takes_them_in() -> None:
    """Also for a fleet that somebody has begun to make, which has a row without a digest."""
    begun = replace(row(LOCAL), digest="", execution_digest="", own_digest="", document="{}")
    for live in (let_go(), let_go(begun)):
        plan = planned(importing(LOCAL), live)
        assert [change.action for change in plan.changes] == [Action.ADOPT]
        assert [step.verb for step in plan.steps] == ["fleet.adopt"]
        assert sound(plan, importing(LOCAL), live)
    assert [held.change.key for held in planned(tree(LOCAL), let_go(begun)).held] == [KEY]


def test_an_import_where_no_host_was_let_go() -> None:
    """The entry may stay when its fleet was destroyed: the next plan makes it, and says so."""
    live = ledger()
    plan = planned(importing(LOCAL), live)
    assert [change.action for change in plan.changes] == [Action.CREATE]
    assert [step.verb for step in plan.steps] == ["fleet.make"]
    assert sound(plan, importing(LOCAL), live)


def test_an_import_that_was_carried_out_means_nothing() -> None:
    """A fleet whose hosts answer changes in place."""
    live = replace(let_go(row(LOCAL)), released_host_names=frozenset({"local-7"}))
    changed = fleet("local", local={"cpu": 2})
    plan = planned(importing(changed), live)
    assert [change.action for change in plan.changes] == [Action.UPDATE]
