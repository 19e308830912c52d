from __future__ import annotations

from dataclasses import replace

from fleetform.model.plan import Impact
from fleetform.model.run import RunState
from fleetform.views.plan.notes import impact_text
from unit.plan.trees import fleet, ledger, planned, row, task, tree

HOUR_MS = 3_600_000


def test_a_fleet_names_whose_work_is_on_it_and_for_how_long():
    """With GPU-hours where GPUs are held."""
    plan = planned(tree(), ledger(row(fleet("gpu"))), allow_destroy=True)
    change = replace(plan.changes[0], stake=Impact(("a", "b", "c", "d"), 5, 8))
    known = {"fleet/gpu": {"ms": 2 * HOUR_MS, "gpu_ms": 16 * HOUR_MS, "since": "start"}}
    told = replace(plan, annex={**plan.annex, "at_stake": known})
    assert impact_text(told, change) == (
        "1 host with the jobs of a, b, c and 1 more on 8 GPUs, 2h00m so far, 16 GPU-hours"
    )
    known["fleet/gpu"]["since"] = "checkpoint"
    assert "2h00m since the last checkpoint" in impact_text(told, change)


def test_a_held_restart_says_what_of_its_own_is_at_stake():
    """A run is not told its own name."""
    live = ledger(row(task("train"), RunState.RUNNING, gpus=2))
    plan = planned(tree(task("train", commands=["new"])), live)
    assert impact_text(plan, plan.held[0].change) == "its work on 2 GPUs"


def test_what_ends_nothing_says_nothing():
    """An empty text, and no line."""
    plan = planned(tree(task("a")), ledger())
    assert impact_text(plan, plan.changes[0]) == ""
