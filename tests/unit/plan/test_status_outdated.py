"""Results whose inputs have changed since their runs started."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.lineage import InputChange, InputEvent
from fleetform.model.plan import StaleResult
from fleetform.model.run import RunState
from fleetform.model.run_state import Outdated
from fleetform.spec.desired import ResourceKey
from fleetform.views.plan.markdown import render as render_markdown
from fleetform.views.plan.text import render
from unit.plan.trees import ledger, planned, row, task, tree

RERUN = (InputChange("train", InputEvent.RERUN),)


def key(name: str) -> ResourceKey:
    return ResourceKey("run", name)


def test_what_inherits_another_document_is_stale_until_it_runs():
    """Marked by an earlier apply, or by this plan; the plan says so each time."""
    marked = row(task("old"), stale=Outdated.INHERITED)
    before, after = task("new", own="same"), task("new", own="same", env={"A": "1"})
    plan = planned(tree(task("old"), after), ledger(marked, row(before)))
    assert plan.stale == (StaleResult(key("new"), True), StaleResult(key("old"), True))


def test_what_started_from_other_results_is_stale():
    """With the names of its inputs; nothing runs for it, and the digest does not cover it."""
    live = replace(ledger(row(task("eval"))), outdated={"eval": RERUN})
    plan = planned(tree(task("eval")), live)
    assert plan.is_empty
    assert plan.digest == planned(tree(task("eval")), ledger(row(task("eval")))).digest
    assert plan.stale == (StaleResult(key("eval"), False, RERUN),)


def test_what_runs_anew_or_is_gone_is_stale_no_more():
    """It will be made of what there is."""
    live = replace(
        ledger(
            row(task("eval"), stale=Outdated.INHERITED), row(task("gone"), stale=Outdated.INHERITED)
        ),
        outdated={"eval": RERUN, "unknown": RERUN},
    )
    assert planned(tree(task("eval", commands=["new"])), live).stale == ()


def test_what_runs_now_is_not_told_as_a_result():
    """Only what is over has one."""
    live = ledger(row(task("busy"), RunState.RUNNING, stale=Outdated.INHERITED))
    assert planned(tree(task("busy")), live).stale == ()


def test_a_plan_names_the_results_that_it_makes_outdated():
    """Also those along a chain, and not what it runs again itself; the digest does not cover it."""
    rows = (row(task("sweep")), row(task("best")), row(task("report")), row(task("again")))
    live = replace(ledger(*rows), dependents={"sweep": ["again", "best"], "best": ["report"]})
    new = {"commands": ["new"]}
    desired = tree(task("sweep", **new), task("best"), task("report"), task("again", **new))
    plan = planned(desired, live)
    assert plan.annex["outdates"] == ["best", "report"]
    assert plan.digest == planned(desired, ledger(*rows)).digest
    line = "These results become outdated: best, report"
    assert f"~ {line}" in [one.text for one in render(plan)]
    assert line in "".join(render_markdown(plan))
    assert (
        planned(tree(*map(task, ("sweep", "best", "report", "again"))), live).annex["outdates"]
        == []
    )
