"""Which running work a change would end."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.live import Live, Work
from fleetform.model.plan import Impact, Plan, Scope
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from unit.plan.blockers.guards import make
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree, volume

MOUNTED = task("user", volumes=[{"name": "data", "path": "/in"}])


def busy() -> Live:
    live = ledger(
        row(fleet("gpu")),
        row(volume("data", on="gpu", deletion_policy="delete")),
        row(task("train"), RunState.RUNNING, gpus=8),
        row(MOUNTED, RunState.RUNNING),
        row(task("waits"), RunState.PENDING),
    )
    hour = 3_600_000
    return replace(
        live,
        work=(
            Work("train", "gpu", 2, 8, NOW_MS - 2 * hour),
            Work("train", "other", 1, 4, NOW_MS - 2 * hour),
            Work("user", "gpu", 1, 0, NOW_MS - hour),
        ),
    )


def stakes(plan: Plan) -> dict[str, Impact]:
    changes = (*plan.changes, *(one.change for one in plan.held))
    return {str(one.key): one.stake for one in changes if one.stake is not None}


def test_removing_a_run_ends_its_work_on_every_fleet():
    """Its own, wherever it is; one that waits has none."""
    found = stakes(planned(tree(fleet("gpu"), MOUNTED), busy()))
    assert found["run/train"] == Impact(("train",), 3, 12)
    assert "run/waits" not in found


def test_removing_a_fleet_or_a_volume_ends_all_that_is_on_it():
    """Whoever works there, by name."""
    found = stakes(planned(tree(), busy(), allow_destroy=True))
    assert found["fleet/gpu"] == Impact(("train", "user"), 3, 8)
    assert found["volume/data"] == Impact(("user",), 1, 0)


def test_what_is_at_stake_is_found_under_new_names():
    """What is renamed in the same plan has the work that it had."""
    names = (("fleet/gpu", "fleet/big"), ("volume/data", "volume/sets"), ("run/train", "run/fit"))
    moved = tuple(
        (ResourceKey(*before.split("/")), ResourceKey(*after.split("/"))) for before, after in names
    )
    desired = tree(
        fleet("big"), volume("sets", on="big", path="/other", deletion_policy="delete"), task("fit")
    )
    scope = Scope(replaces=("fleet/big", "fit"))
    found = stakes(make(replace(desired, moved=moved), busy(), scope))
    assert found["fleet/big"] == Impact(("fit", "user"), 3, 8)
    assert found["volume/sets"] == Impact(("user",), 1, 0)
    assert found["run/fit"] == Impact(("fit",), 3, 12)


def test_a_change_in_place_ends_nothing():
    """A priority, or one host more."""
    desired = tree(
        fleet("gpu", nodes=2),
        volume("data", on="gpu", deletion_policy="delete"),
        task("train", priority=9),
        MOUNTED,
        task("waits"),
    )
    assert stakes(planned(desired, busy())) == {}


def test_a_held_restart_says_what_it_would_cost():
    """What somebody weighs who is about to allow it."""
    desired = tree(
        fleet("gpu"),
        volume("data", on="gpu", deletion_policy="delete"),
        task("train", commands=["new"]),
        MOUNTED,
        task("waits"),
    )
    plan = planned(desired, busy())
    assert [str(one.change.key) for one in plan.held] == ["run/train"]
    assert stakes(plan) == {"run/train": Impact(("train",), 3, 12)}


def test_how_long_it_has_gone_is_the_annexs():
    """Time is no part of the digest: the same plan later has the same."""
    live = busy()
    plan = planned(tree(), live, allow_destroy=True)
    hour = 3_600_000
    assert plan.annex["at_stake"]["fleet/gpu"] == {
        "ms": 2 * hour, "gpu_ms": 8 * 2 * hour, "since": "start",
    }  # fmt: skip
    earlier = replace(live, work=tuple(replace(one, started_at_ms=1) for one in live.work))
    assert planned(tree(), earlier, allow_destroy=True).digest == plan.digest


def test_what_is_let_go_or_ends_already_has_nothing_at_stake():
    """Nothing would end by what is held: it is not shown as if it would."""
    live = busy()
    desired = replace(
        tree(), removed=(ResourceKey("run", "train"), ResourceKey("fleet", "gpu"), MOUNTED.key)
    )
    plan = planned(desired, live)
    assert {str(one.change.key) for one in plan.held} >= {"run/train", "fleet/gpu", "run/user"}
    assert not stakes(plan).keys() & {"run/train", "fleet/gpu", "run/user"}
    ending = ledger(row(task("train"), RunState.FINISHING, archived=True))
    plan = planned(tree(task("train")), replace(ending, work=(Work("train", "gpu", 1, 0),)))
    assert len(plan.held) == 1
    assert stakes(plan) == {}
