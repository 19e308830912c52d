"""Who is at work on what is to go keeps it, whatever their document says by now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.live import EarlierRun, Live, LiveResource
from fleetform.model.plan import HeldBy, Permissions, Plan
from fleetform.model.run import RunState
from fleetform.plan.serialize import dump, load
from fleetform.plan.wait_targets import ending
from fleetform.spec.desired import Declared, Desired, ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

LOCAL = fleet("local")
DATA = volume("data", deletion_policy="delete")
ELSEWHERE = volume("data", path="/other", deletion_policy="delete")
MOUNTS = [{"name": "data", "path": "/d"}]


def trainer(name: str = "train", **document: object) -> Declared:
    return task(name, volumes=MOUNTS, **document)


def allowed(desired: Desired, live: Live) -> Plan:
    """With permission to destroy; the second reader finds nothing."""
    plan = planned(desired, live, allow_destroy=True)
    assert check(plan, desired, live, Permissions(allow_destroy=True)) == ()
    return plan


def held(plan: Plan) -> dict[str, tuple[HeldBy, str]]:
    return {str(one.change.key): (one.by, one.detail) for one in plan.held}


@pytest.mark.parametrize(
    ("after", "there"), [({}, ()), ({"volumes": MOUNTS}, (ELSEWHERE,))], ids=["goes", "moves"]
)
@pytest.mark.parametrize("policy", ["delete", "retain", "snapshot"])
def test_a_successor_that_waits_ends_nothing(
    policy: str, after: dict[str, object], there: tuple[Declared, ...]
) -> None:
    """What is replaced once it has finished is at work until then, and keeps its volume."""
    train = trainer(on_change="after-finish")
    data = volume("data", deletion_policy=policy)
    live = ledger(row(LOCAL), row(data), row(train, RunState.RUNNING))
    changed = task("train", commands=["other"], on_change="after-finish", **after)
    plan = allowed(tree(LOCAL, changed, *there), live)
    assert held(plan)["volume/data"] == (HeldBy.RUNNING_WORK, "run/train has it mounted")
    # What would begin on the place that it leaves is held with it.
    assert [str(one.key) for one in plan.changes] == ([] if there else ["run/train"])


def test_what_the_plan_stops_is_no_obstacle() -> None:
    """The step that takes the data away comes after it, and waits for its end."""
    live = ledger(row(LOCAL), row(DATA), row(trainer(), RunState.RUNNING))
    plan = allowed(tree(LOCAL), live)
    (drop,) = (step for step in plan.steps if step.verb == "volume.remove")
    assert drop.needs == ("run.stop:run/train",)


def leaving(state: RunState) -> LiveResource:
    """A run that has left the tree, and is not over."""
    return row(trainer(), state, archived=True)


@pytest.mark.parametrize("state", [RunState.FINISHING, RunState.RUNNING, RunState.UNKNOWN])
def test_what_has_left_the_tree_keeps_its_volume_until_its_end(state: RunState) -> None:
    """It was asked to end, so the plan follows: whoever applies waits for that run."""
    gone = leaving(state)
    plan = allowed(tree(LOCAL), ledger(row(LOCAL), row(DATA), gone))
    assert held(plan) == {
        "volume/data": (HeldBy.ENDING, "run/train has it mounted, and is still ending")
    }
    assert ending(plan) == {gone.uid: ResourceKey("run", "train")}
    assert load(dump(plan)) == plan


def test_an_earlier_run_that_was_asked_to_end_is_waited_for() -> None:
    """Nobody else of its name is at work; one that nobody has asked to end keeps the volume."""
    for asked, by in ((True, HeldBy.ENDING), (False, HeldBy.RUNNING_WORK)):
        earlier = EarlierRun("f" * 32, '{"volumes":[{"name":"data","path":"/d"}]}', asked)
        live = ledger(row(LOCAL), row(DATA), row(task("train"), RunState.PENDING, earlier=earlier))
        plan = allowed(tree(LOCAL, task("train")), live)
        assert [one.by for one in plan.held] == [by]
        assert set(ending(plan)) == ({"f" * 32} if asked else set())


def test_one_that_goes_on_among_many_that_end_has_to_be_decided_on() -> None:
    """To wait for the others would release nothing."""
    other = row(trainer("other"), RunState.RUNNING)
    live = ledger(row(LOCAL), row(DATA), leaving(RunState.FINISHING), other)
    plan = allowed(tree(LOCAL, trainer("other"), ELSEWHERE), live)
    assert held(plan) == {
        "volume/data": (HeldBy.RUNNING_WORK, "run/other and 1 more have it mounted")
    }


def test_a_stop_that_is_held_ends_nothing() -> None:
    """The budget holds some of the ends; a volume is not made anew under those who go on."""
    many = [trainer(f"t{number}") for number in range(7)]
    live = ledger(row(LOCAL), row(DATA), *(row(one, RunState.RUNNING) for one in many))
    plan = allowed(tree(LOCAL, ELSEWHERE), live)
    assert held(plan)["volume/data"] == (
        HeldBy.RUNNING_WORK,
        "run/t5 and 1 more have it mounted",
    )
    assert {one.key.kind for one in plan.changes} == {"run"}


@pytest.mark.parametrize("fleets", [["local"], []])
def test_a_fleet_is_not_forgotten_under_what_has_left_the_tree(fleets: list[str]) -> None:
    """Its jobs would be nobody's; so the plan follows their end."""
    gone = row(task("train", fleets=fleets), RunState.FINISHING, archived=True)
    desired = replace(tree(), removed=(LOCAL.key,))
    plan = allowed(desired, ledger(row(LOCAL), gone))
    works = "is running" if fleets else "may be running"
    assert held(plan) == {
        "fleet/local": (HeldBy.ENDING, f"run/train {works} on it, and is still ending")
    }
    assert ending(plan) == {gone.uid: ResourceKey("run", "train")}
