"""What a plan may do to what was renamed, let go, imported or left out: each break is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant, check
from fleetform.model.live import Live
from fleetform.model.plan import Permissions, Plan, Scope
from fleetform.model.run import RunState
from fleetform.model.volume import RetainedData
from fleetform.plan.planner import plan
from fleetform.spec.desired import Desired, ResourceKey
from unit.plan.trees import fleet, ledger, row, task, tree, volume

ALLOWED = Permissions(allow_destroy=True, allow_restart=True)


def key(address: str) -> ResourceKey:
    return ResourceKey(*address.split("/"))


def found(made: Plan, desired: Desired, live: Live, scope: Scope | None = None) -> set[Invariant]:
    return {one.invariant for one in check(made, desired, live, ALLOWED, scope or Scope())}


def planned(desired: Desired, live: Live, scope: Scope | None = None) -> Plan:
    made = plan(desired, live, permissions=ALLOWED, scope=scope or Scope(), now_ms=1)
    assert check(made, desired, live, ALLOWED, scope or Scope()) == ()
    return made


def renamed() -> tuple[Plan, Desired, Live]:
    desired = replace(
        tree(fleet("main"), task("user", fleets=["main"])),
        moved=((key("fleet/local"), key("fleet/main")),),
    )
    live = ledger(row(fleet("local")), row(task("user", fleets=["local"])))
    return planned(desired, live), desired, live


def test_a_renaming_is_clean():
    """One step, and what mentions it is no difference."""
    made, _, _ = renamed()
    assert [step.verb for step in made.steps] == ["resource.move"]


def test_a_renaming_that_nobody_declares():
    """A name is the tree's to give."""
    made, desired, live = renamed()
    assert Invariant.MOVED_IS_THE_SAME in found(made, replace(desired, moved=()), live)


def test_a_renaming_of_what_is_not_there():
    """Nor can it be given to nobody."""
    made, desired, live = renamed()
    rows = {one: two for one, two in live.resources.items() if one != key("fleet/local")}
    assert Invariant.MOVED_IS_THE_SAME in found(made, desired, replace(live, resources=rows))


def test_a_renaming_to_a_name_that_is_taken():
    """Two would be one."""
    made, desired, live = renamed()
    rows = {**live.resources, key("fleet/main"): replace(row(fleet("main")), uid="f" * 32)}
    assert Invariant.MOVED_IS_THE_SAME in found(made, desired, replace(live, resources=rows))


def test_a_renamed_fleet_that_goes_and_comes():
    """Whoever overlooks the entry removes the old one and makes another."""
    _, desired, live = renamed()
    blind = plan(replace(desired, moved=()), live, permissions=ALLOWED, now_ms=1)
    assert {step.verb for step in blind.steps} >= {"fleet.remove", "fleet.make"}
    assert Invariant.MOVED_IS_KEPT in found(blind, desired, live)


def test_a_renamed_row_that_is_not_pinned():
    """The old name by its generation, the new one as free."""
    made, desired, live = renamed()
    for claim in ("generation", "absent"):
        kept = tuple(one for one in made.predicates if one.claim != claim)
        assert Invariant.ROWS_PINNED in found(replace(made, predicates=kept), desired, live)


def test_something_excluded_that_is_done():
    """The scope is the word of whoever asked."""
    desired = tree(task("one"), task("two"))
    made = planned(desired, ledger())
    assert found(made, desired, ledger(), Scope(excludes=("two",))) == {Invariant.SCOPE_KEPT}


def test_something_asked_for_that_is_left_out():
    """And it is not cut short either."""
    desired = tree(task("one"), task("two"))
    made = planned(desired, ledger(), Scope(targets=("one",)))
    assert found(made, desired, ledger()) == {Invariant.SCOPE_KEPT}


def test_a_run_that_is_run_again_unasked():
    """`--replace` is a reason for what it means, and for nothing else."""
    desired, live = tree(task("one"), task("two")), ledger(row(task("one")), row(task("two")))
    made = planned(desired, live, Scope(replaces=("one",)))
    assert Invariant.FINISHED_STAYS_FINISHED in found(made, desired, live, Scope(replaces=("two",)))


def test_what_is_called_by_a_name_that_nobody_declares():
    """It neither goes nor is renamed, until somebody says which of the two was meant."""
    live = ledger(row(fleet("local")), row(volume("data")))
    moved = replace(tree(fleet("local")), moved=((key("volume/data"), key("volume/texts")),))
    assert found(planned(moved, live), moved, live) == set()
    meant = replace(moved, removed=(key("volume/texts"),))
    made = planned(meant, live)
    assert found(made, meant, live) == set()
    assert Invariant.MOVED_IS_KEPT in found(made, moved, live)


def test_what_nobody_lets_go():
    """A verb that forgets needs an entry that says so."""
    live = ledger(row(fleet("old")))
    desired = replace(tree(), removed=(key("fleet/old"),))
    made = planned(desired, live)
    assert Invariant.RELEASED_IS_KEPT in found(made, tree(), live)


def test_what_is_let_go_and_destroyed():
    """An entry of `removed:` never ends anything."""
    live = ledger(row(fleet("old")))
    made = plan(tree(), live, permissions=ALLOWED, now_ms=1)
    desired = replace(tree(), removed=(key("fleet/old"),))
    assert Invariant.RELEASED_IS_KEPT in found(made, desired, live)


def test_a_run_at_work_that_is_let_go():
    """Nobody would end it, and nobody would know of it."""
    desired = replace(tree(), removed=(key("run/busy"),))
    made = planned(desired, ledger(row(task("busy"))))
    live = ledger(row(task("busy"), RunState.RUNNING))
    assert Invariant.RELEASED_IS_KEPT in found(made, desired, live)


def test_what_is_taken_in_unasked():
    """Data that somebody finds is not theirs for being there."""
    desired = replace(tree(fleet("local"), volume("data")), imports=(key("volume/data"),))
    made = planned(desired, ledger())
    assert found(made, replace(desired, imports=()), ledger()) == {Invariant.FOUND_IS_ASKED_FOR}


@pytest.mark.parametrize(
    "there", [{"volume": "texts"}, {"uid": "u-2"}, {"path": "/elsewhere"}], ids=str
)
def test_what_comes_back_and_was_another(there: dict[str, str]):
    """Name, uid and place are those under which the ledger let it go."""
    desired = tree(fleet("local"), volume("data"))
    live = replace(ledger(), left=(RetainedData("data", "u-1", "/data"),))
    made = planned(desired, live)
    assert found(made, desired, live) == set()
    other = replace(live, left=(replace(live.left[0], **there),))
    assert found(made, desired, other) == {Invariant.RETURNS_ITS_OWN}


def test_what_comes_back_unpinned():
    """Somebody else may take the data in before the plan is carried out."""
    desired = tree(fleet("local"), volume("data"))
    live = replace(ledger(), left=(RetainedData("data", "u-1", "/data"),))
    made = planned(desired, live)
    bare = tuple(one for one in made.predicates if one.claim != "left")
    assert Invariant.RETURNS_ITS_OWN in found(replace(made, predicates=bare), desired, live)
