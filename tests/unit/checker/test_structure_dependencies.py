"""Nothing begins on a volume or a fleet that the tree says is another one."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import Invariant, check
from fleetform.model.plan import Deferred, Held, HeldBy
from unit.checker.test_check import ALLOWED, found
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

USER = task("user", fleets=["local"], volumes=[{"name": "data", "path": "/in"}])
MOVED = tree(fleet("local"), volume("data", path="/new"), USER)
LIVE = ledger(row(fleet("local")), row(volume("data")))


def test_what_begins_on_what_goes() -> None:
    """A volume's replacement that is held or left for another plan holds whoever would mount it."""
    plan = planned(MOVED, LIVE, allow_destroy=True)
    assert not check(plan, MOVED, LIVE, ALLOWED)
    (data,) = (one for one in plan.changes if one.key.kind == "volume")
    rest = tuple(one for one in plan.changes if one is not data)
    held = replace(plan, changes=rest, held=(Held(data, HeldBy.WINDOW, "frozen", "wait"),))
    assert Invariant.BEGINS_ON_DECLARED in found(held, MOVED, LIVE, ALLOWED)
    left = replace(plan, changes=rest, deferred=(Deferred(data, "excluded"),))
    assert Invariant.BEGINS_ON_DECLARED in found(left, MOVED, LIVE, ALLOWED)


def test_what_begins_on_what_is_not_there() -> None:
    """A fleet that is left out leaves no host for what is declared on it."""
    desired, live = tree(fleet("local"), volume("data"), USER), ledger()
    plan = planned(desired, live)
    assert not check(plan, desired, live, ALLOWED)
    (local,) = (one for one in plan.changes if one.key.kind == "fleet")
    rest = tuple(one for one in plan.changes if one is not local)
    left = replace(plan, changes=rest, deferred=(Deferred(local, "excluded"),))
    assert Invariant.BEGINS_ON_SOMETHING in found(left, desired, live, ALLOWED)


def test_what_begins_on_a_result_that_is_to_be_another() -> None:
    """A run that is held takes along what begins on its result."""
    desired = tree(fleet("local"), task("aa", commands=["new"]), task("bb", upstream=["aa"]))
    live = ledger(row(fleet("local")), row(task("aa")))
    plan = planned(desired, live)
    (first,) = (one for one in plan.changes if one.key.name == "aa")
    rest = tuple(one for one in plan.changes if one is not first)
    held = replace(plan, changes=rest, held=(Held(first, HeldBy.WINDOW, "frozen", "wait"),))
    assert Invariant.BEGINS_ON_DECLARED in found(held, desired, live, ALLOWED)
