"""An open window of the rules last applied holds what it is for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.plan import HeldBy
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import FreezeWindow, Rules
from unit.plan.blockers.guards import EVERYTHING, NARROW, OPEN, SHUT, held_by, make
from unit.plan.trees import NOW_MS, fleet, ledger, row, task, tree


@pytest.mark.parametrize(
    ("window", "held"),
    [(OPEN, {"fleet/old", "run/new"}), (NARROW, {"fleet/old"}), (SHUT, set())],
)
def test_a_window_holds_what_it_is_for(window: FreezeWindow, held: set[str]) -> None:
    """All, or what destroys; its reason is in the plan, and no time is."""
    rules = Rules(freeze=(window,))
    plan = make(tree(task("new"), rules=rules), replace(ledger(row(fleet("old"))), rules=rules))
    assert set(held_by(plan)) == held
    assert {one.detail for one in plan.held} <= {window.reason}


def test_windows_are_those_last_applied() -> None:
    """One that the commit brings holds the next plan; one that it takes away holds this one."""
    plan = make(tree(task("new"), rules=Rules(freeze=(OPEN,))), ledger(rules=Rules()))
    assert {str(one.key) for one in plan.changes} == {"environment/lab", "run/new"}
    assert "The changed rules apply from the next plan on" in plan.warnings[0]
    plan = make(tree(task("new")), ledger(rules=Rules(freeze=(OPEN,))))
    assert held_by(plan) == {"environment/lab": HeldBy.WINDOW, "run/new": HeldBy.WINDOW}


def test_the_digest_has_the_window_and_not_its_times() -> None:
    """The same plan a minute later is the same plan."""
    rules = Rules(freeze=(OPEN,))
    desired, live = tree(task("new"), rules=rules), ledger(rules=rules)
    first, second = (
        make_plan(desired, live, permissions=EVERYTHING, now_ms=NOW_MS + late)
        for late in (0, 60_000)
    )
    assert first.digest == second.digest
    assert first.annex["windows"] == [
        {"reason": "holidays", "only": "all", "open": True, "begin_ms": 0,
         "end_ms": NOW_MS + 3_600_000}
    ]  # fmt: skip
