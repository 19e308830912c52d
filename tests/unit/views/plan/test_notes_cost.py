from __future__ import annotations

from dataclasses import replace

from fleetform.views.plan.notes import cost_text, total_cost_text
from unit.plan.trees import fleet, ledger, planned, row, tree

DOLLAR = 1_000_000


def plan_of(before: int, after: int, price: int | None = 1_200_000):
    priced = {} if price is None else {"price": price}
    live = ledger(row(fleet("gpu", nodes=before, **priced)))
    return planned(tree(fleet("gpu", nodes=after, **priced), fleet("free")), live)


def test_both_sides_in_dollars_an_hour():
    """Of a change, and of the plan, which says what is not in it."""
    plan = plan_of(2, 3)
    change = plan.changes[1]
    assert cost_text(change) == "$2.40/h → $3.60/h"
    assert total_cost_text(plan) == "Cost: $2.40/h → $3.60/h, and 1 fleet without a price."


def test_without_a_price_nothing_is_said():
    """Nothing is guessed."""
    plan = plan_of(2, 3, price=None)
    assert [cost_text(change) for change in plan.changes] == ["", ""]
    assert total_cost_text(plan) == ""


def test_what_is_not_made_yet_has_a_ceiling():
    """And small prices have the digits they need."""
    change = replace(plan_of(2, 3).changes[1], cost_before=0, cost_after=1_234)
    assert cost_text(change, ceiling=True) == "up to $0.001234/h"
    assert cost_text(replace(change, cost_before=None)) == "no price → $0.001234/h"
