"""What a person should hear before reading what a plan does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.plan import Permissions
from fleetform.model.run import RunState
from fleetform.plan.planner import plan as make_plan
from unit.plan.blockers.guards import EVERYTHING
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, task, tree


@pytest.mark.parametrize(
    ("there", "gone", "warned"), [(3, 3, True), (5, 3, True), (6, 3, False), (2, 2, False)]
)
def test_that_much_goes_is_said(there: int, gone: int, warned: bool) -> None:
    """More than half, and more than two; held or not."""
    tasks = [task(f"t{number}") for number in range(there)]
    live = ledger(*(row(one, RunState.RUNNING) for one in tasks))
    for permissions in (EVERYTHING, Permissions()):
        plan = make_plan(
            tree(*tasks[gone:], fleet("f")), live, permissions=permissions, now_ms=NOW_MS
        )
        assert any("more than half" in one for one in plan.warnings) == warned


def test_a_plan_that_goes_back_says_so() -> None:
    """Only where something would change; who destroys goes nowhere."""
    older = replace(tree(fleet("local", nodes=2)), commit="a" * 40)
    live = replace(ledger(row(fleet("local"))), newer_commit="b" * 40)
    (said,) = planned(older, live).warnings
    assert said == (
        f"Commit {'a' * 12} is older than {'b' * 12}, which was applied last: this plan returns to the older configuration."
    )
    assert planned(replace(tree(fleet("local")), commit="a" * 40), live).warnings == ()
    assert planned(older, replace(live, newer_commit="")).warnings == ()


def test_a_run_that_has_nowhere_to_go_is_told() -> None:
    """Neither declared nor there, held, or left out: it would wait and say nothing."""
    (said,) = planned(tree(task("train")), ledger()).warnings
    assert said == "There will be no fleet, so train waits: declare a fleet."
    both = tree(fleet("local"), task("train"), task("test"))
    assert planned(both, ledger()).warnings == ()
    assert planned(tree(fleet("local"), task("train")), ledger(row(fleet("local")))).warnings == ()
    held = replace(ledger(), released_host_names=frozenset({"local-0"}))
    (said,) = planned(both, held).warnings
    assert said == (
        "There will be no fleet, so test and 1 more wait: each declared fleet is blocked or left out"
        " of this plan."
    )
    (said,) = planned(tree(task("h10"), task("h2")), ledger()).warnings
    assert said.startswith("There will be no fleet, so h2 and 1 more wait")
