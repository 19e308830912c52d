"""Instances of clouds that have ended, and instances that no ledger has: what a look finds, and what a plan does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.model.drift import Observed, RecordedDrift
from fleetform.model.existence import CloudPlace
from fleetform.model.instance import InstanceState
from fleetform.model.plan import Action, HeldBy, Permissions, Reason
from fleetform.plan.drift import compare
from fleetform.providers.contract.observed import InstanceSeen
from unit.plan.test_offers import G5_MICROS, bought, on_aws, plan_of
from unit.plan.trees import NOW_MS, ledger, planned, row, tree

PLACE = CloudPlace("aws", "1", "us-east-1")


def listed(number, *, alive=True, uid=""):
    return InstanceSeen(
        uid or f"u{number}", f"gpus-{number}", "gpus", "e", "", 0, alive,
        provider="aws", endpoint={"id": f"i-{number}"},
    )  # fmt: skip


@pytest.fixture
def live():
    rows = tuple(
        replace(one, endpoint={**one.endpoint, "account": "1", "region": "us-east-1"})
        for one in (bought(0), bought(1))
    )
    return replace(ledger(row(on_aws(2))), instances=rows)


def found(live, *instances):
    return compare(live, Observed(NOW_MS, clouds={PLACE: instances})).drifts


def test_instances_that_exist_have_not_drifted(live):
    """Nothing is known of agents before they have answered once."""
    assert found(live, listed(0), listed(1)) == ()


def test_a_cloud_that_was_not_asked_proves_nothing(live):
    """Without credentials no instance is taken for gone."""
    assert compare(live, Observed(NOW_MS)).drifts == ()


def test_an_instance_that_was_terminated_is_gone(live):
    """It is named by its id, which a successor does not have."""
    (one,) = found(live, listed(0, alive=False), listed(1))
    assert (one.path, one.expected, one.seen) == ("hosts[gpus-0].host", "i-0", "gone")


def test_an_instance_that_no_ledger_has_is_named(live):
    """Also a second one with the uid of a row: it was created twice."""
    unknown = found(live, listed(0), listed(1), listed(7), listed(8, uid="u1"))
    assert [one.path for one in unknown] == ["hosts[i-7].unknown", "hosts[i-8].unknown"]


def recorded(live):
    (one,) = found(live, listed(0, alive=False), listed(1))
    return replace(live, recorded_drift=(RecordedDrift(one, NOW_MS, NOW_MS),))


def test_a_plan_without_a_look_replaces_what_has_ended(live):
    """The fleet is updated without destruction, the step names the uid, and the checker agrees."""
    live = recorded(live)
    plan = plan_of(on_aws(2), live)
    (change,) = plan.changes
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.DRIFTED,))
    assert not change.destructive
    assert change.steps[0].arguments["ended"] == {"u0": "i-0 was terminated"}
    assert plan.annex["hosts_created"] == {"gpus": ["gpus-0"]}
    # It costs nothing any more, and its replacement the price of an offer of now.
    assert (change.cost_before, change.cost_after) == (526_000, 526_000 + G5_MICROS)
    assert check(plan, tree(on_aws(2)), live, Permissions()) == ()


def test_a_change_of_the_fleet_replaces_what_has_ended_too(live):
    """More nodes are created in the same step."""
    plan = plan_of(on_aws(3), recorded(live))
    assert plan.steps[0].arguments["ended"] == {"u0": "i-0 was terminated"}
    assert plan.annex["hosts_created"] == {"gpus": ["gpus-0", "gpus-2"]}


def test_a_successor_is_not_taken_for_what_has_ended(live):
    """A record that is older than the instance in the place changes nothing."""
    first, other = live.instances
    live = recorded(live)
    successor = replace(first, uid="u9", endpoint={**first.endpoint, "id": "i-9"})
    assert plan_of(on_aws(2), replace(live, instances=(successor, other))).changes == ()


def test_unknown_instances_block_their_fleet(live):
    """A plan with a refresh says that a person must decide."""
    live = replace(live, drift=found(live, listed(0), listed(1), listed(7)))
    assert [one.by for one in plan_of(on_aws(2), live).held] == [HeldBy.DRIFT]


def test_a_silent_instance_does_not_keep_its_fleet(live):
    """Its cloud deletes it with what runs there, and nobody has to declare it lost."""
    silent = tuple(
        replace(one, install_id="i", state=InstanceState.UNREACHABLE, message="no answer")
        for one in live.instances
    )
    plan = planned(tree(), replace(live, instances=silent), allow_destroy=True)
    assert [one.action for one in plan.changes] == [Action.DELETE]
