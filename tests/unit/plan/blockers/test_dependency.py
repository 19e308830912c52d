"""What begins waits until the ground it stands on is the one that is declared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.live import Live
from fleetform.model.plan import WHOLE, HeldBy, Permissions, Plan, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Declared, Desired, Obstacle
from unit.plan.trees import NOW_MS, fleet, ledger, row, task, tree, volume

LOCAL = fleet("local")
MOUNT = [{"name": "data", "path": "/in"}]
TRAIN = task("train", volumes=MOUNT)
AGAIN = task("train", volumes=MOUNT, commands=["new"])
ELSEWHERE = volume("data", path="/new")
DONE = ledger(row(LOCAL), row(volume("data")), row(TRAIN))


def planned(desired: Desired, live: Live = DONE, scope: Scope = WHOLE, **allowed: bool) -> Plan:
    permissions = Permissions(**allowed)
    plan = make_plan(desired, live, permissions=permissions, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, permissions, scope) == ()
    return plan


def names(plan: Plan) -> list[str]:
    return [str(one.key) for one in plan.changes]


def test_what_begins_waits_for_the_volume_that_is_declared() -> None:
    """It would write into the one that goes, and count as done when that has gone."""
    plan = planned(tree(LOCAL, ELSEWHERE, AGAIN))
    assert names(plan) == []
    by = {str(one.change.key): one for one in plan.held}
    assert by["volume/data"].by is HeldBy.DESTRUCTIVE
    assert by["run/train"].by is HeldBy.DEPENDENCY
    assert by["run/train"].detail == "it needs volume/data, which is blocked"
    both = planned(tree(LOCAL, ELSEWHERE, AGAIN), allow_destroy=True)
    assert names(both) == ["run/train", "volume/data"]


VOLUME_GONE = Obstacle("undeclared-reference", "volumes", "No document declares the volume `data`.")


@pytest.mark.parametrize("policy", ["retain", "snapshot", "delete"])
@pytest.mark.parametrize("is_released", [False, True])
@pytest.mark.parametrize("state", [RunState.DONE, RunState.RUNNING])
def test_a_volume_that_an_unchanged_run_names_is_not_removed(
    policy: str, state: RunState, *, is_released: bool
) -> None:
    """Whatever its policy says, the run would name what neither the configuration nor the ledger has."""
    data = volume("data", deletion_policy=policy)
    live = ledger(row(LOCAL), row(data), row(TRAIN, state))
    desired = tree(LOCAL, beyond=[TRAIN], obstacle=VOLUME_GONE)
    if is_released:
        desired = replace(desired, removed=(data.key,))
    plan = planned(desired, live, allow_destroy=True)
    assert names(plan) == []
    (held,) = plan.held
    assert held.change.key == data.key
    if state is RunState.DONE:
        assert held.by is HeldBy.DEPENDENCY
        assert held.detail == "run/train refers to it and is not removed"
        assert held.cure == "declare volume/data again, or remove it from run/train"
        everything = planned(desired, live, destroy=True, allow_destroy=True)
        assert "volume/data" in names(everything)


def test_a_fleet_that_an_unchanged_run_names_is_not_removed() -> None:
    """A run that waits for something undeclared keeps what it names besides."""
    run = task("train", fleets=["local"], volumes=MOUNT)
    live = ledger(row(LOCAL), row(run))
    desired = tree(beyond=[run], obstacle=VOLUME_GONE)
    plan = planned(desired, live, allow_destroy=True)
    assert names(plan) == []
    assert [(str(one.change.key), one.by) for one in plan.held] == [
        ("fleet/local", HeldBy.DEPENDENCY)
    ]


def test_an_excluded_replacement_holds_what_would_begin_on_it() -> None:
    """Nothing is begun on what the tree says is another one, whoever left it for later."""
    scope = Scope(excludes=("volume/data",))
    plan = planned(tree(LOCAL, ELSEWHERE, AGAIN), scope=scope, allow_destroy=True)
    assert names(plan) == []
    (held,) = plan.held
    assert held.detail.startswith("it needs volume/data, and ")
    assert held.cure == "plan volume/data as well"


def test_a_target_brings_its_replacements_along() -> None:
    """A target comes with what it needs as it is declared; one that does not begin needs nothing."""
    scope = Scope(targets=("train",))
    plan = planned(tree(LOCAL, ELSEWHERE, AGAIN), scope=scope, allow_destroy=True)
    assert names(plan) == ["run/train", "volume/data"]
    assert plan.warnings == ("volume/data is planned too, because the targets need it.",)
    assert names(planned(tree(LOCAL, ELSEWHERE, TRAIN), scope=scope, allow_destroy=True)) == []


@pytest.mark.parametrize(
    ("before", "after", "follows"),
    [
        (task("train"), AGAIN, False),
        (TRAIN, AGAIN, True),
        (TRAIN, task("train", volumes=MOUNT, priority=1), True),
    ],
    ids=["mounts it from now on", "other commands", "another priority"],
)
def test_what_waits_already(before: Declared, after: Declared, follows: bool) -> None:
    """What stands on the old one may be changed in place; what does not yet is kept from it."""
    live = ledger(row(LOCAL), row(volume("data")), row(before, RunState.PENDING))
    plan = planned(tree(LOCAL, ELSEWHERE, after), live)
    assert names(plan) == (["run/train"] if follows else [])


def test_what_is_only_changed_in_place_holds_nobody() -> None:
    """A volume whose change is left for later and that stays the same one is as good as before."""
    desired = tree(LOCAL, volume("data", deletion_policy="delete"), AGAIN)
    plan = planned(desired, scope=Scope(excludes=("volume/data",)))
    assert names(plan) == ["run/train"]
    assert [str(one.change.key) for one in plan.deferred] == ["volume/data"]


def test_an_import_waits_for_the_fleet_that_it_is_on() -> None:
    """A directory is found on a host, and of a fleet that is left out there is none."""
    desired = replace(tree(LOCAL, volume("data")), imports=(volume("data").key,))
    plan = planned(desired, ledger(), scope=Scope(excludes=("fleet/local",)))
    assert names(plan) == []
    (held,) = plan.held
    assert (str(held.change.key), held.by) == ("volume/data", HeldBy.DEPENDENCY)
    assert held.detail == "it needs fleet/local, and excluded by `--exclude`"


def test_what_comes_after_waits_for_the_run_that_is_declared() -> None:
    """Its input is what the tree has replaced already: it would be made of that, and count as done."""
    first, second = task("aa"), task("bb", upstream=["aa"])
    live = ledger(row(LOCAL), row(first, RunState.RUNNING), row(second))
    desired = tree(LOCAL, task("aa", commands=["a3"]), task("bb", upstream=["aa"], commands=["b3"]))
    plan = planned(desired, live)
    assert names(plan) == []
    by = {one.change.key.name: one for one in plan.held}
    assert by["aa"].by is HeldBy.RUNNING_WORK
    assert by["bb"].detail == "it needs run/aa, which is blocked"
    assert names(planned(desired, live, allow_restart=True)) == ["run/aa", "run/bb"]
    # What is not begun by this plan is not kept from anything.
    only_driven = tree(LOCAL, desired.resources[first.key], task("bb", upstream=["aa"], priority=1))
    assert names(planned(only_driven, live)) == ["run/bb"]
