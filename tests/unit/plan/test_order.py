"""Which steps wait for which."""

from __future__ import annotations

from dataclasses import replace

from fleetform.checker import check
from fleetform.model.plan import Permissions, Scope
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import NOW_MS, fleet, ledger, planned, queue, row, task, tree, volume

LOCAL = fleet("local")
DATA = volume("data")
USER = task("train", fleets=["local"], volumes=[{"name": "data", "path": "/in"}])


def test_what_is_made_comes_after_what_it_refers_to() -> None:
    """Fleets, then volumes, then runs."""
    needs = {step.key: step.needs for step in planned(tree(LOCAL, DATA, USER), ledger()).steps}
    assert needs == {
        "fleet.make:fleet/local": (),
        "volume.make:volume/data": ("fleet.make:fleet/local",),
        "run.submit:run/train": ("fleet.make:fleet/local", "volume.make:volume/data"),
    }


def test_a_queue_comes_between_its_fleets_and_its_runs() -> None:
    """A run waits for its queue; one that names none waits for the default queue."""
    desired = tree(
        LOCAL, queue("batch", "local", default=True), task("one", queue="batch"), task("two")
    )
    needs = {step.key: step.needs for step in planned(desired, ledger()).steps}
    assert needs == {
        "fleet.make:fleet/local": (),
        "queue.set:queue/batch": ("fleet.make:fleet/local",),
        "run.submit:run/one": ("queue.set:queue/batch",),
        "run.submit:run/two": ("queue.set:queue/batch",),
    }


def test_what_is_there_is_not_waited_for() -> None:
    """A need is a step of this plan."""
    plan = planned(tree(LOCAL, DATA, USER), ledger(row(LOCAL), row(DATA)))
    assert [step.needs for step in plan.steps] == [()]


def test_what_goes_goes_the_other_way() -> None:
    """Runs stop, volumes are dropped, fleets are removed."""
    live = ledger(row(LOCAL), row(DATA), row(USER, RunState.RUNNING))
    plan = planned(tree(), live, allow_destroy=True)
    needs = {step.key: step.needs for step in plan.steps}
    stop = "run.stop:run/train"
    assert needs == {
        "fleet.remove:fleet/local": (stop, "volume.forget:volume/data"),
        "run.archive:run/train": (stop,),
        stop: (),
        "volume.forget:volume/data": (stop,),
    }


def test_a_fleet_outlasts_runs_that_may_be_anywhere() -> None:
    """A run that names no fleet may be on any of those that go."""
    live = ledger(row(LOCAL), row(task("free"), RunState.RUNNING))
    plan = planned(tree(), live, allow_destroy=True)
    needs = {step.key: step.needs for step in plan.steps}
    assert needs["fleet.remove:fleet/local"] == ("run.stop:run/free",)


def test_a_run_is_stopped_before_what_it_uses_is_made_anew() -> None:
    """Its document waits for nothing then: the new fleet would wait for the old one's end for ever."""
    stopped = task("train", fleets=["local"], state="stopped")
    live = ledger(row(LOCAL), row(task("train", fleets=["local"]), RunState.RUNNING))
    desired, allowed = tree(LOCAL, stopped), Permissions(allow_destroy=True)
    scope = Scope(replaces=("fleet/local",))
    plan = make_plan(desired, live, permissions=allowed, scope=scope, now_ms=NOW_MS)
    needs = {step.key: step.needs for step in plan.steps}
    assert needs["run.update:run/train"] == ()
    assert needs["fleet.remove:fleet/local"] == ("run.stop:run/train",)
    assert check(plan, desired, live, allowed, scope) == ()


def test_a_tombstone_that_waits_may_be_let_go_with_its_fleet() -> None:
    """Its end was asked for and nobody has seen to it yet: it ends before the fleet goes."""
    live = ledger(row(LOCAL), row(task("aa"), RunState.SUBMITTED, archived=True))
    desired = replace(tree(), removed=(ResourceKey("run", "aa"),))
    plan = planned(desired, live, allow_destroy=True)
    needs = {step.key: step.needs for step in plan.steps}
    assert needs["fleet.remove:fleet/local"] == ("run.stop:run/aa",)
    assert check(plan, desired, live, Permissions(allow_destroy=True)) == ()


def test_each_volume_that_a_mount_may_have_taken_outlasts_the_run() -> None:
    """Of several names one was taken, and nobody knows here which."""
    either = [{"name": ["data", "more"], "path": "/in"}]
    live = ledger(
        row(LOCAL),
        row(DATA),
        row(volume("more", path="/more")),
        row(task("train", volumes=either), RunState.RUNNING),
    )
    plan = planned(tree(LOCAL), live, allow_destroy=True)
    needs = {step.key: step.needs for step in plan.steps}
    assert needs["volume.forget:volume/data"] == ("run.stop:run/train",)
    assert needs["volume.forget:volume/more"] == ("run.stop:run/train",)
    assert check(plan, tree(LOCAL), live, Permissions(allow_destroy=True)) == ()
