"""What was asked for is what is changed, and nothing is in two places."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import Invariant, check
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.plan import WHOLE, Deferred, Permissions, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.serialize import sealed
from unit.checker.test_check import ALLOWED, example, found, key
from unit.plan.trees import NOW_MS, fleet, ledger, row, task, tree, volume


def test_what_is_left_and_done() -> None:
    """What is left for another plan is not carried out by this one."""
    plan, *rest = example()
    change = next(one for one in plan.changes if one.key == key("run/new"))
    both = replace(plan, deferred=(Deferred(change, "not a `--target`"),))
    assert Invariant.LEFT_IS_LEFT in found(both, *rest)


def test_a_change_beside_the_targets() -> None:
    """A target brings along what it needs, and nothing more."""
    desired = tree(fleet("local"), task("asked", fleets=["local"]), task("other"))
    live, scope = ledger(), Scope(targets=("run/asked",))
    made = make_plan(desired, live, permissions=ALLOWED, scope=scope, now_ms=NOW_MS)
    assert {str(one.key) for one in made.changes} == {"fleet/local", "run/asked"}
    assert check(made, desired, live, ALLOWED, scope) == ()
    whole = make_plan(desired, live, permissions=ALLOWED, now_ms=NOW_MS)
    details = [one.detail for one in check(whole, desired, live, ALLOWED, scope)]
    assert details == ["run/other is changed, and no target needs it"]


def test_a_host_makes_room_only_where_somebody_asked() -> None:
    """Neither another host than the one asked for, nor one of another fleet, nor without a word."""
    gpu = fleet("gpu", nodes=2)
    hosts = tuple(
        Instance(f"uid-{number}", f"gpu-{number}", "gpu", number, InstanceState.READY)
        for number in range(2)
    )
    live = replace(ledger(row(gpu)), instances=hosts)
    asked = Scope(replaces=("host/gpu-1",))
    made = make_plan(tree(gpu), live, permissions=Permissions(), scope=asked, now_ms=NOW_MS)
    assert check(made, tree(gpu), live, Permissions(), asked) == ()
    for names, scope in ((["gpu-0"], asked), (["other-1"], asked), (["gpu-1"], WHOLE)):
        (change,) = made.changes
        (step,) = change.steps
        other = replace(step, arguments={**step.arguments, "exchange": names})
        wrong = sealed(replace(made, scope=scope, changes=(replace(change, steps=(other,)),)))
        found = {one.invariant for one in check(wrong, tree(gpu), live, Permissions(), scope)}
        assert found == {Invariant.EXCHANGED_IS_ASKED_FOR}


def test_what_is_held_on_the_way_brings_along_what_it_waits_for() -> None:
    """A fleet that is asked for waits for a volume, which waits for runs: all of them may go."""
    old, data = fleet("old"), volume("data", on="old", deletion_policy="delete")
    user = task("user", volumes=[{"name": "data", "path": "/in"}])
    live = ledger(row(old), row(data), row(user, RunState.PENDING))
    scope = Scope(targets=("fleet/old",))
    made = make_plan(tree(), live, permissions=Permissions(), scope=scope, now_ms=NOW_MS)
    assert [str(one.key) for one in made.changes] == ["run/user"]
    assert [str(one.change.key) for one in made.held] == ["fleet/old", "volume/data"]
    assert check(made, tree(), live, Permissions(), scope) == ()
