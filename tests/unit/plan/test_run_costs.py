"""What the runs that a plan submits cost at most."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.app.offers import offers_of_fleet
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.offers import TriedOffer
from fleetform.views.plan.text import render
from unit.plan.trees import NOW_MS, fleet, item, ledger, planned, row, task, tree

SMALL, LARGE = 1_006_000, 1_212_000
"""Micro-dollars an hour of the offers of `gpus`, g5.xlarge and g5.2xlarge."""

ON_LARGE = "g5.2xlarge in us-east-1"


def gpus(**fields):
    aws = {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-1"}
    types = ["g5.xlarge", "g5.2xlarge"]
    return fleet("gpus", regions=["us-east-1"], instance_types=types, aws=aws, **fields)


def run(name="train", **fields):
    return task(name, **{"fleets": ["gpus"], "max_duration": 3600, "stop_duration": 0, **fields})


def planned_on(live, declared, *others):
    live = replace(live, offers={"gpus": offers_of_fleet(declared.document)})
    return planned(tree(declared, *others), live, allow_destroy=True)


def costs(*runs, live=None, **fields):
    return planned_on(live or ledger(), gpus(**fields), *runs).annex.get("run_costs", {})


def printed(plan):
    return "\n".join("".join(span.text for span in line.spans) for line in render(plan))


def test_the_dearest_offer_counts():
    """Not the first one: the cloud may refuse it."""
    assert costs(run()) == {
        "train": {"runs": 1, "micros": LARGE, "dearest": ON_LARGE, "attempts": 1}
    }
    assert costs(run(), max_price=1_100_000)["train"]["micros"] == SMALL


def test_the_time_to_stop_counts():
    """A run that ignores its end is killed this much later: 10 seconds by default."""
    assert costs(run(stop_duration=1800))["train"]["micros"] == LARGE * 3 // 2
    without = run()
    document = {key: value for key, value in without.document.items() if key != "stop_duration"}
    assert costs(replace(without, document=document))["train"]["micros"] > LARGE


@pytest.mark.parametrize(
    ("retry", "hours", "facts"),
    [
        ({"on": ["error"], "max_attempts": 3}, 3, {"attempts": 3}),
        ({"on": ["error"], "duration": 7200}, 3, {"within_seconds": 7200}),
        ({"on": ["error"], "duration": 7200, "max_attempts": 2}, 2, {"attempts": 2}),
        ({"on": ["error"], "duration": 3600, "max_attempts": 9}, 2, {"within_seconds": 3600}),
        ({"on": ["no-capacity"]}, 1, {"attempts": 1}),
    ],
)
def test_all_attempts_count(retry, hours, facts):
    """As many as there may be, or as many as begin within a time."""
    (found,) = costs(run(retry=retry)).values()
    assert found == {"runs": 1, "micros": hours * LARGE, "dearest": ON_LARGE, **facts}


@pytest.mark.parametrize(
    ("fields", "of_fleet", "why"),
    [
        ({"max_duration": None}, {}, "`max_duration` is not set"),
        ({"retry": {"on": ["error"]}}, {}, "`retry` has neither `max_attempts` nor `duration`"),
        (
            {"retry": {"on": ["no-capacity"], "requeue_exit_codes": [75]}},
            {},
            "`retry` has neither `max_attempts` nor `duration`",
        ),
        ({}, {"spot_policy": "auto"}, "the price of g5.xlarge in us-east-1 (spot) is unknown"),
    ],
)
def test_what_has_no_limit_says_why(fields, of_fleet, why):
    """A time, a number of attempts or a price without a limit leaves no bound."""
    declared = run(**fields)
    document = {key: value for key, value in declared.document.items() if value is not None}
    plan = planned_on(ledger(), gpus(**of_fleet), replace(declared, document=document))
    assert plan.annex["run_costs"] == {"train": {"runs": 1, "unbounded": why}}
    assert f"cost: without limit: {why}" in printed(plan)


def test_hosts_and_offers_of_an_earlier_apply_count():
    """The plan does not change the fleet: the catalogue of today is not what its hosts are created by."""
    live = ledger(row(gpus()))
    applied = {"instance_type": "g5.4xlarge", "region": "us-east-1", "price_micros": 1_624_000}
    with_offer = replace(live, tried_offers={"gpus": [TriedOffer("gpus", applied)]})
    assert costs(run(), live=with_offer)["train"]["micros"] == 1_624_000
    endpoint = {**applied, "price_micros": 3_000_000, "id": "i-0"}
    host = Instance(
        "u0", "gpus-0", "gpus", 0, InstanceState.READY, provider="aws", endpoint=endpoint
    )
    found = costs(run(), live=replace(with_offer, instances=(host,)))
    assert found["train"]["micros"] == 3_000_000


def test_a_refused_offer_counts():
    """It is asked for again in minutes."""
    refused = TriedOffer(
        "gpus", {"instance_type": "g5.2xlarge", "region": "us-east-1"}, NOW_MS, "no capacity"
    )
    live = replace(ledger(), tried_offers={"gpus": [refused]})
    assert costs(run(), live=live)["train"]["micros"] == LARGE


def test_own_hosts_cost_nothing():
    """A run that may start there or in a cloud is bounded by the cloud; one that may only start there has no cost."""
    own = fleet("own")
    anywhere = run("anywhere", fleets=[])
    plan = planned_on(ledger(), gpus(), own, anywhere, run("here", fleets=["own"]))
    assert plan.annex["run_costs"].keys() == {"anywhere"}
    assert plan.annex["run_costs"]["anywhere"]["micros"] == LARGE


def test_the_text_says_what_is_in_the_limit():
    """The attempts and the host of a run, and the sum of all runs with how many have no limit."""
    sweep = [
        item("sweep", n, fleets=["gpus"], max_duration=1800, stop_duration=0, nodes=2)
        for n in range(3)
    ]
    tried = run(retry={"on": ["error"], "max_attempts": 3})
    begun = run("begun", retry={"on": ["error"], "duration": 7200})
    endless = task("endless", fleets=["gpus"])
    shown = printed(planned_on(ledger(), gpus(), *sweep, tried, begun, endless))
    assert f"at most $1.22 on {ON_LARGE}, if the run needs its max_duration" in shown
    assert (
        f"at most $3.64 on {ON_LARGE} (3 attempts of $1.212), if each needs its max_duration"
        in shown
    )
    assert f"at most $3.64 on {ON_LARGE} (attempts begin within 2h00m), if each" in shown
    total = "Cost of the runs: at most $10.91, if each of 5 needs its max_duration, and 1 run without limit."
    assert shown.count(total) == 1


def test_elements_of_a_sweep_cost_what_each_may_need():
    """Each element shows its own bound, and the plan the sum once."""
    hours = [
        item("sweep", n, fleets=["gpus"], max_duration=3600 * (n + 1), stop_duration=0)
        for n in range(2)
    ]
    earlier = item("sweep", 0, fleets=["gpus"], commands=["false"])
    plan = planned_on(ledger(row(earlier)), gpus(), *hours)
    assert plan.annex["run_costs"]["sweep"]["elements"] == {
        "sweep[0]": LARGE,
        "sweep[1]": 2 * LARGE,
    }
    shown = printed(plan)
    assert f"cost: at most $1.22 on {ON_LARGE}, if the run needs its max_duration" in shown
    assert f"cost: at most $2.43 on {ON_LARGE}, if the run needs its max_duration" in shown
    assert shown.count("Cost of the runs: at most $3.64, if each of 2 needs its max_duration.") == 1


def test_spot_prices_are_those_of_now():
    """The limit holds for them alone, because AWS changes prices of spot instances that exist."""
    spot = {
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "spot": True,
        "price_micros": 400_000,
    }
    live = replace(ledger(row(gpus())), tried_offers={"gpus": [TriedOffer("gpus", spot)]})
    plan = planned_on(live, gpus(), run())
    assert plan.annex["run_costs"]["train"]["spot"] is True
    text = (
        "at most $0.40 on g5.xlarge in us-east-1 (spot) at the spot prices of the last refresh, if"
    )
    assert text in printed(plan)
