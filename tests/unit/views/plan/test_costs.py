from __future__ import annotations

from dataclasses import replace

from fleetform.views.plan.costs import cost_text, disk_cost_text, total_cost_texts
from unit.plan.trees import declare, fleet, ledger, planned, row, tree

DOLLAR = 1_000_000


def plan_of(before: int, after: int, price: int | None = 1_200_000):
    priced = {} if price is None else {"price": price}
    live = ledger(row(fleet("gpu", nodes=before, **priced)))
    return planned(tree(fleet("gpu", nodes=after, **priced), fleet("free")), live)


def test_both_sides_in_dollars_an_hour():
    """Of a change, and of the plan, which says what is not in it."""
    plan = plan_of(2, 3)
    change = plan.changes[1]
    assert cost_text(plan, change) == "$2.40/h → $3.60/h"
    assert total_cost_texts(plan) == [
        "Cost of the changed fleets: $2.40/h → $3.60/h, and 1 fleet without a price."
    ]


def test_without_a_price_nothing_is_said():
    """Nothing is guessed."""
    plan = plan_of(2, 3, price=None)
    assert [cost_text(plan, change) for change in plan.changes] == ["", ""]
    assert total_cost_texts(plan) == []


def test_what_is_not_made_yet_has_a_ceiling():
    """And small prices have the digits they need."""
    plan = plan_of(2, 3)
    change = replace(plan.changes[1], cost_before=0, cost_after=1_234)
    assert cost_text(plan, change, ceiling=True) == "up to $0.0013/h"
    assert cost_text(plan, replace(change, cost_before=None)) == "no price → $0.0013/h"


def test_what_demand_may_bring_in_is_a_limit():
    """With what the hosts of now cost; of a change that is not made yet, it is the ceiling."""
    plan = plan_of(2, 2, 1_000_000)
    change = replace(plan.changes[0], cost_before=0, cost_after=0, cost_max=4 * DOLLAR)
    assert cost_text(plan, change) == "$0.00/h now, up to $4.00/h by demand"
    assert cost_text(plan, change, ceiling=True) == "up to $4.00/h"
    assert (
        cost_text(plan, replace(change, cost_after=DOLLAR))
        == "$0.00/h → $1.00/h, up to $4.00/h by demand"
    )


def test_disks_have_no_known_price():
    """A new and a larger one say so, and so does the plan; a registered one and another policy cost nothing more."""
    disk, larger = volume(), volume(size=20 * GB)
    assert costs(ledger(), disk) == ["unknown for 10GB"]
    assert costs(ledger(row(disk)), larger) == ["unknown for 20GB"]
    assert costs(ledger(row(disk)), volume(deletion_policy="delete")) == [""]
    assert costs(ledger(), volume(size=None, volume_id="vol-1")) == [""]


GB = 1 << 30


def volume(**more):
    said = {
        "type": "volume", "backend": "aws", "region": "us-east-1", "availability_zone": "us-east-1a",
        "size": 10 * GB, "aws": {"account": "123456789012"}, **more,
    }  # fmt: skip
    return declare("volume", "data", {key: value for key, value in said.items() if value})


def costs(live, declared):
    plan = planned(tree(declared), live)
    texts = [disk_cost_text(change) for change in plan.changes]
    total = ["Cost of the changed volumes: 1 volume of unknown price."] if any(texts) else []
    assert total_cost_texts(plan) == total
    return texts
