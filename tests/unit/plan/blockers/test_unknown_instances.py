"""No host is created beside instances that the ledger does not know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.app.offers import offers_of_fleet
from fleetform.model.drift import TABLE, Drift, RecordedDrift
from fleetform.model.plan import HeldBy, Scope
from unit.plan.blockers.guards import make
from unit.plan.test_offers import bought, on_aws, printed
from unit.plan.trees import NOW_MS, ledger, row, tree


@pytest.fixture
def live():
    """Return a ledger with two hosts of a fleet; a look has found another one, minutes ago."""
    fleet, line = on_aws(2), TABLE["fleet", "unknown"]
    drift = Drift(
        fleet.key,
        "unknown",
        line.drift_class,
        line.remedy,
        "in the ledger",
        "not in the ledger",
        "i-7",
    )
    return replace(
        ledger(row(fleet)),
        instances=(bought(0), bought(1)),
        recorded_drift=(RecordedDrift(drift, NOW_MS - 9, NOW_MS - 7),),
        offers={"gpus": offers_of_fleet(fleet.document)},
    )


@pytest.mark.parametrize(
    ("nodes", "scope"),
    [(3, Scope()), (2, Scope(replaces=("host/gpus-1",)))],
)
def test_no_host_is_created(live, nodes, scope):
    """More nodes and a replacement are blocked, and the plan says by which instance and what to do."""
    plan = make(tree(on_aws(nodes)), live, scope)
    assert plan.changes == ()
    (held,) = plan.held
    assert (held.by, held.detail) == (
        HeldBy.DRIFT,
        "fleet gpus has instances that the ledger does not know: i-7",
    )
    shown = printed(plan)
    assert "fleetform fleet adopt" in shown
    assert "fleetform fleet terminate" in shown
    assert "creates" not in shown


def test_what_creates_nothing_is_done(live):
    """A fleet may have fewer hosts, and other fleets may have more."""
    plan = make(tree(on_aws(1)), live)
    assert plan.annex["hosts_removed"] == {"gpus": ["gpus-1"]}
    assert plan.held == ()
    healed = make(tree(on_aws(3)), replace(live, recorded_drift=()))
    assert healed.annex["hosts_created"] == {"gpus": ["gpus-2"]}
