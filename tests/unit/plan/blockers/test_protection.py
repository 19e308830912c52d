"""Protection is lifted first, and by nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.drift import Drift, DriftClass, Remedy
from fleetform.model.live import Work
from fleetform.model.plan import HeldBy, Scope
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from unit.plan.blockers.guards import held_by, make
from unit.plan.trees import fleet, ledger, row, task, tree, volume


def test_a_protected_run_at_work_is_not_stopped_by_its_document() -> None:
    """`state: stopped` is held as a removal is; one that waits loses nothing."""
    for state, held in ((RunState.RUNNING, True), (RunState.PENDING, False)):
        live = ledger(row(task("a", protect=True), state))
        plan = make(tree(task("a", protect=True, state="stopped")), live)
        assert held_by(plan) == ({"run/a": HeldBy.PROTECTION} if held else {})


def test_what_is_protected_is_not_forgotten() -> None:
    """What nobody knows of any more is protected by nobody."""
    live = ledger(row(volume("data", protect=True)))
    desired = replace(tree(fleet("local")), removed=(ResourceKey("volume", "data"),))
    assert held_by(make(desired, live)) == {"volume/data": HeldBy.PROTECTION}


def test_a_fleet_with_a_protected_volume_stays() -> None:
    """A volume that stays keeps its fleet, whatever was allowed."""
    live = ledger(row(fleet("old")), row(volume("data", on="old", protect=True)))
    plan = make(tree(), live)
    assert held_by(plan) == {"fleet/old": HeldBy.DEPENDENCY, "volume/data": HeldBy.PROTECTION}


@pytest.mark.parametrize("how", ["removed", "made anew", "recreated", "renamed as well"])
def test_a_fleet_does_not_go_from_under_a_protected_run(how: str) -> None:
    """A run that names no fleet is ended with its hosts, and so holds them while it is at work."""
    run, old, other = task("train", protect=True), fleet("old"), fleet("other")
    live = replace(
        ledger(row(run, RunState.RUNNING), row(old), row(other)),
        work=(Work("train", "old", 1, 0),),
    )
    desired, scope, name = tree(run, other), Scope(), "fleet/old"
    if how == "made anew":
        desired, scope = tree(run, old, other), Scope(replaces=("fleet/old",))
    if how == "recreated":
        another = fleet("old", blocks=2, update={"strategy": "recreate"})
        desired = tree(run, another, other)
    if how == "renamed as well":
        moved = ((ResourceKey("fleet", "old"), ResourceKey("fleet", "new")),)
        desired = replace(tree(run, fleet("new"), other), moved=moved)
        scope, name = Scope(replaces=("fleet/new",)), "fleet/new"
    plan = make(desired, live, scope)
    assert held_by(plan) == {name: HeldBy.PROTECTION}
    assert plan.held[0].detail.startswith("run/train is running on it")
    assert held_by(make(desired, replace(live, work=()), scope)) == {}


def test_a_renaming_is_no_loss_for_what_is_protected() -> None:
    """The same thing under another name is the same thing."""
    live = ledger(row(task("a", protect=True), RunState.RUNNING))
    desired = replace(
        tree(task("b", protect=True)),
        moved=((ResourceKey("run", "a"), ResourceKey("run", "b")),),
    )
    plan = make(desired, live)
    assert [step.verb for step in plan.steps] == ["resource.move"]
    assert plan.held == ()


def test_a_replacement_that_somebody_asks_for_is_held() -> None:
    """`--replace` is a flag like any other."""
    live = ledger(row(task("train", protect=True)))
    plan = make(tree(task("train", protect=True)), live, Scope(replaces=("run/train",)))
    assert held_by(plan) == {"run/train": HeldBy.PROTECTION}


def test_a_run_whose_host_has_gone_keeps_no_fleet() -> None:
    """It is lost already, and waits for ever where the fleet that would find out waits for it."""
    run, old = task("train", protect=True), fleet("old")
    live = replace(
        ledger(row(run, RunState.RUNNING), row(old)),
        work=(Work("train", "old", 1, 0, hosts=("old-0",)),),
    )
    desired = tree(run, fleet("old", blocks=2, update={"strategy": "recreate"}))
    assert held_by(make(desired, live)) == {"fleet/old": HeldBy.PROTECTION}
    for host, held in (("old-0", {}), ("old-1", {"fleet/old": HeldBy.PROTECTION})):
        gone = Drift(
            ResourceKey("fleet", "old"), "host", DriftClass.ENFORCED, Remedy.APPLY,
            "there", "gone", part=host,
        )  # fmt: skip
        assert held_by(make(desired, replace(live, drift=(gone,)))) == held
