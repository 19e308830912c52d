"""What somebody else owns is left alone."""

from __future__ import annotations

from dataclasses import replace

from fleetform.model.claim import Claim
from fleetform.model.plan import HeldBy
from fleetform.spec.desired import ResourceKey
from unit.plan.holds.guards import held_by, make
from unit.plan.trees import fleet, ledger, row, task, tree, volume


def test_what_somebody_else_owns_is_held() -> None:
    """With every permission, and with the owner's name."""
    key = ResourceKey("volume", "data")
    live = replace(ledger(row(fleet("local"))), claims={key: Claim("/data", "u", "theirs")})
    plan = make(tree(fleet("local"), volume("data"), task("t", volumes=[{"name": "data"}])), live)
    assert held_by(plan) == {"volume/data": HeldBy.OWNER, "run/t": HeldBy.DEPENDENCY}
    assert plan.held[1].detail == "/data is environment theirs (u)"
