"""What stays under a name keeps what its document names, and ends with a fleet as it was told."""

from __future__ import annotations

import json
from dataclasses import replace

from fleetform.checker import Invariant
from fleetform.model.live import EarlierRun, Work
from fleetform.model.run import RunState
from unit.checker.test_check import ALLOWED, found, key
from unit.plan.trees import fleet, ledger, planned, row, task, tree

OLD, NEW = fleet("old"), fleet("new")
AFTER = task("train", fleets=["new"], on_change="after-finish")


def test_a_fleet_that_only_an_earlier_run_of_a_name_is_on_may_go() -> None:
    """The plan tells that it ends, as of all who are at work there; its name refers to another."""
    earlier = EarlierRun("e" * 32, json.dumps({"fleets": ["old"]}))
    waiting = row(AFTER, RunState.PENDING, earlier=earlier)
    live = replace(
        ledger(row(OLD), row(NEW), waiting), work=(Work("train", "old", 1, 0, hosts=("old-0",)),)
    )
    desired = tree(NEW, AFTER)
    plan = planned(desired, live, allow_destroy=True)
    (change,) = plan.changes
    assert (change.key, change.stake.runs) == (OLD.key, ("train",))
    assert found(plan, desired, live, ALLOWED) == set()


def test_a_fleet_that_a_document_names_stays() -> None:
    """Nobody would know where the run goes next."""
    live = ledger(row(OLD), row(NEW), row(AFTER, RunState.PENDING))
    plan = planned(tree(NEW, AFTER), live, allow_destroy=True)
    onto = task("train", fleets=["old"], on_change="after-finish")
    there = replace(live, resources={**live.resources, key("run/train"): row(onto)})
    assert Invariant.REFERRED_TO_STAYS in found(plan, tree(NEW, AFTER), there, ALLOWED)
