"""What hosts cost an hour, before a change and after."""

from __future__ import annotations

import pytest

from fleetform.plan.costs import hourly_cost
from unit.plan.trees import fleet, ledger, planned, row, tree

DOLLAR = 1_000_000


@pytest.mark.parametrize(
    ("document", "micros"),
    [
        ({"price": DOLLAR, "nodes": {"min": 2, "target": 3, "max": 4}}, 3 * DOLLAR),
        ({"price": DOLLAR}, DOLLAR),
        ({"price": 100_000, "ssh_config": {"hosts": [{}, {}, {}]}}, 300_000),
        ({"max_price": 2 * DOLLAR, "nodes": {"min": 0, "target": 0, "max": 4}}, 0),
        ({"nodes": {"min": 2, "target": 2, "max": 2}}, None),
        ({"max_price": DOLLAR, "nodes": {"min": 3, "target": None, "max": 3}}, 3 * DOLLAR),
    ],
)
def test_a_fleet_costs_its_hosts(document, micros):
    """As many as it wants, at what each costs; none where nobody says a price."""
    assert hourly_cost(document) == micros


def costs(desired, live, **permissions):
    plan = planned(desired, live, **permissions)
    changes = (*plan.changes, *(one.change for one in plan.held))
    return {str(one.key): (one.cost_before, one.cost_after) for one in changes}


def test_a_change_says_both_sides():
    """More hosts, a new fleet, one that goes, and one without a price."""
    desired = tree(
        fleet("gpu", nodes=3, price=DOLLAR), fleet("new", price=DOLLAR), fleet("free", nodes=2)
    )
    live = ledger(
        row(fleet("gpu", nodes=2, price=DOLLAR)),
        row(fleet("old", price=DOLLAR)),
        row(fleet("free")),
    )
    assert costs(desired, live, allow_destroy=True) == {
        "fleet/gpu": (2 * DOLLAR, 3 * DOLLAR),
        "fleet/new": (0, DOLLAR),
        "fleet/old": (DOLLAR, 0),
        "fleet/free": (None, None),
    }


def test_a_price_that_is_said_from_now_on_has_no_before():
    """Nobody knew what it cost: that is not nothing."""
    assert costs(tree(fleet("gpu", price=DOLLAR)), ledger(row(fleet("gpu")))) == {
        "fleet/gpu": (None, DOLLAR)
    }


def test_a_blocked_range_has_a_ceiling():
    """All hosts that demand may bring in, at the highest price."""
    cloud = fleet("cloud", nodes={"min": 0, "target": 0, "max": 4}, max_price=2 * DOLLAR)
    (held,) = planned(tree(beyond=[cloud]), ledger()).held
    assert (held.change.cost_after, held.change.cost_max) == (0, 8 * DOLLAR)


def test_what_is_held_shows_what_it_may_come_to():
    """A fleet that nothing makes yet, up to its highest bid."""
    cloud = fleet("cloud", nodes=4, max_price=2 * DOLLAR)
    assert costs(tree(beyond=[cloud]), ledger()) == {"fleet/cloud": (0, 8 * DOLLAR)}
