"""Which offer a fleet on a cloud is created by, and what it costs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from fleetform.app.offers import offers_of_fleet
from fleetform.model.instance import Instance, InstanceState
from fleetform.model.offers import TriedOffer
from fleetform.model.plan import Action, HeldBy, Scope
from fleetform.plan.kinds.fleet import template_of
from fleetform.views.moments import moment
from fleetform.views.plan.json import to_json
from fleetform.views.plan.text import render
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, tree

AWS = {
    "regions": ["us-east-1"],
    "instance_types": ["g5.xlarge", "g5.2xlarge"],
    "aws": {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-1"},
}
G5_MICROS, LARGE_MICROS = 1_006_000, 1_212_000


def on_aws(nodes=2, **fields):
    return fleet("gpus", nodes=nodes, **{**AWS, **fields})


def plan_of(declared, live=None, **permissions):
    live = live or ledger()
    offers = {declared.key.name: offers_of_fleet(declared.document)}
    return planned(tree(declared), replace(live, offers=offers), **permissions)


def bought(number):
    endpoint = {"instance_type": "g4dn.xlarge", "price_micros": 526_000, "id": f"i-{number}"}
    return Instance(
        f"u{number}", f"gpus-{number}", "gpus", number, InstanceState.PROVISIONING,
        provider="aws", endpoint=endpoint,
    )  # fmt: skip


def printed(plan):
    return "\n".join("".join(span.text for span in line.spans) for line in render(plan))


def places(plan):
    return plan.steps[-1].arguments["instances"]


def test_the_step_has_the_cheapest_offer():
    """Apply chooses nothing: region, type, image and price are in each place."""
    plan = plan_of(on_aws())
    assert [one["endpoint"]["instance_type"] for one in places(plan)] == ["g5.xlarge"] * 2
    assert places(plan)[0]["endpoint"] == {
        **AWS["aws"],
        "region": "us-east-1",
        "root_gb": 100,
        "orphan_after": 86_400,
        "instance_type": "g5.xlarge",
        "price_micros": G5_MICROS,
    }
    (change,) = plan.changes
    assert (change.cost_before, change.cost_after) == (0, 2 * G5_MICROS)
    assert plan.annex["hosts_created"] == {"gpus": ["gpus-0", "gpus-1"]}
    assert "gpus-0, gpus-1 (g5.xlarge in us-east-1, $1.006/h each" in printed(plan)


def test_the_step_has_the_offers_after_it():
    """They are in order of price, each in every zone that may be used, and none is in another region."""
    plan = plan_of(on_aws(availability_zones=["us-east-1b", "us-east-1a"]))
    offers = plan.steps[-1].arguments["offers"]
    assert [(one["instance_type"], one["zone"]) for one in offers] == [
        ("g5.xlarge", "us-east-1b"),
        ("g5.xlarge", "us-east-1a"),
        ("g5.2xlarge", "us-east-1b"),
        ("g5.2xlarge", "us-east-1a"),
    ]
    assert places(plan)[0]["endpoint"]["zone"] == "us-east-1b"
    assert "creates: gpus-0, gpus-1 (g5.xlarge in us-east-1b, $1.006/h each)" in printed(plan)
    shown = (
        "next offers: g5.xlarge in us-east-1a, $1.01/h; g5.2xlarge in us-east-1b, $1.22/h;"
        " g5.2xlarge in us-east-1a, $1.22/h"
    )
    assert shown in printed(plan)


def test_regions_without_known_prices_come_last():
    """In their own order, each with the smallest type first."""
    plan = plan_of(on_aws(regions=["us-west-2", "eu-west-1", "us-east-1"]))
    offers = plan.steps[-1].arguments["offers"]
    assert [(one["region"], one["instance_type"]) for one in offers] == [
        ("us-east-1", "g5.xlarge"),
        ("us-east-1", "g5.2xlarge"),
        ("us-west-2", "g5.xlarge"),
        ("eu-west-1", "g5.xlarge"),
        ("us-west-2", "g5.2xlarge"),
        ("eu-west-1", "g5.2xlarge"),
    ]


@pytest.mark.parametrize(
    ("retry", "seconds"),
    [
        (None, None),
        ({"on": ["no-capacity"], "duration": 3600}, 3600),
        ({"on": ["error", "no-capacity"]}, -1),
    ],
)
def test_the_place_says_for_how_long_it_is_asked_for(retry, seconds):
    """Without a limit that is a negative number."""
    declared = on_aws(**({} if retry is None else {"retry": retry}))
    assert places(plan_of(declared))[0]["endpoint"].get("retry_seconds") == seconds


def test_a_plan_costs_at_most_the_dearest_offer():
    """The cloud may refuse those before it: text and JSON have both sums, and hosts that exist keep their price."""
    plan = plan_of(on_aws(2))
    shown = printed(plan)
    assert "cost: $0.00/h → $2.02/h, up to $2.43/h with the next offers" in shown
    assert (
        "Cost of the changed fleets: $0.00/h → $2.02/h, up to $2.43/h with the next offers."
        in shown
    )
    (body,) = to_json(plan, version="1")["resource_changes"]
    assert body["costs"] == {
        "before": {"micros": 0, "unknown_hosts": 0},
        "after": {"micros": 2 * G5_MICROS, "unknown_hosts": 0},
        "limit": {"micros": 2 * LARGE_MICROS, "unknown_hosts": 0},
    }
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    limit = plan_of(on_aws(2), live).annex["fleet_costs"]["gpus"]["limit"]
    assert limit == {"micros": 526_000 + LARGE_MICROS, "unknown_hosts": 0}
    assert "with the next offers" not in printed(plan_of(on_aws(2, instance_types=["g5.xlarge"])))


def test_sums_say_what_they_leave_out():
    """Hosts of unknown price are counted beside the sum of the others, before and after the change and in that of the plan."""
    unpriced = replace(bought(1), endpoint={"id": "i-1", "instance_type": "g5.xlarge"})
    live = replace(ledger(row(on_aws(2))), instances=(bought(0), unpriced))
    plan = plan_of(on_aws(3), live)
    shown = printed(plan)
    cost = (
        "$0.53/h + 1 host of unknown price → $1.54/h + 1 host of unknown price,"
        " up to $1.74/h + 1 host of unknown price with the next offers"
    )
    assert f"cost: {cost}" in shown
    assert f"Cost of the changed fleets: {cost}." in shown
    (change,) = plan.changes
    assert (change.cost_before, change.cost_after) == (None, None)
    shown = printed(plan_of(on_aws(2, regions=["us-east-1", "us-west-2"])))
    assert "→ $2.02/h, unknown with the next offers" in shown
    # The dear end is named.
    assert "; g5.2xlarge in us-west-2, unknown price" in shown
    larger = ["g5.xlarge", "g5.2xlarge", "g5.4xlarge", "g5.8xlarge", "g5.48xlarge"]
    shown = printed(plan_of(on_aws(2, instance_types=larger)))
    assert "; 2 more up to g5.48xlarge in us-east-1, $16.29/h" in shown


def test_new_hosts_have_the_image_of_the_others():
    """A plan names what a parameter was when the fleet first needed it; with another renewal it is looked up again."""
    parameter = {**AWS["aws"], "image": "/vision/newest"}
    first = bought(0)
    pinned = replace(first, endpoint={**first.endpoint, "region": "us-east-1", "image": "ami-7"})
    live = replace(ledger(row(on_aws(1, aws=parameter))), instances=(pinned,))
    assert "image: ami-7\n" in printed(plan_of(on_aws(2, aws=parameter), live))
    assert "image: /vision/newest\n" in printed(plan_of(on_aws(2, aws=parameter)))
    renewed = printed(plan_of(on_aws(2, aws={**parameter, "image_renewal": 2}), live))
    assert "image: /vision/newest\n" in renewed


def test_zone_disk_and_placement_are_in_the_place():
    """What the fleet says of each instance beside `aws` is there as well."""
    disk = {"disk": {"min": 200 * 2**30 + 1, "max": None}}
    declared = on_aws(availability_zones=["us-east-1a"], placement="cluster", resources=disk)
    endpoint = places(plan_of(declared))[0]["endpoint"]
    assert (endpoint["zone"], endpoint["placement"], endpoint["root_gb"]) == (
        "us-east-1a",
        "cluster",
        201,
    )


def test_spot_instances_have_no_known_price():
    """The step says that they are spot, the plan that their price is unknown, and a highest price excludes them."""
    plan = plan_of(on_aws(1, spot_policy="spot"))
    endpoint = places(plan)[0]["endpoint"]
    assert (endpoint["spot"], "price_micros" in endpoint) == (True, False)
    (change,) = plan.changes
    assert change.cost_after is None
    assert "g5.xlarge in us-east-1 (spot), unknown price)" in printed(plan)
    assert "cost: $0.00/h → 1 host of unknown price" in printed(plan)
    (held,) = plan_of(on_aws(spot_policy="spot", max_price=9_000_000)).held
    assert "because the price is not known: g5.xlarge in us-east-1 (spot)" in held.detail
    assert "fleetform offer --refresh --region us-east-1" in held.cure


def test_new_hosts_have_lines_of_their_own():
    """Account, image and end of new hosts are a line each, of those that demand brings in too, and of none if no host is created."""
    for declared in (on_aws(), by_demand(0, 0, 3)):
        shown = printed(plan_of(declared))
        assert "      account: 123456789012\n      image: ami-1\n" in shown
        assert "hosts end themselves: after 24h00m without jobs and without a controller\n" in shown
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    assert "account: 1" not in printed(plan_of(on_aws(1, description="x"), live))


@pytest.mark.parametrize(
    ("fields", "effect"),
    [
        ({"max_price": 9_000_000}, "`max_price: 9` excludes spot instances"),
        ({}, "spot instances come last"),
    ],
)
def test_spot_that_is_not_asked_for_first_is_said(fields, effect):
    """`auto` promises the cheaper kind, and without a price of spot that is not known: the plan says so, and what to do."""
    plan = plan_of(on_aws(spot_policy="auto", **fields))
    advice = "`fleetform offer --refresh --region us-east-1` asks AWS for them"
    assert f"warning: {effect}, because their prices are not known; {advice}" in printed(plan)
    assert "warning" not in printed(plan_of(on_aws(spot_policy="on-demand", **fields)))


def test_without_an_offer_the_fleet_is_blocked():
    """The requirement that leaves none is named with the nearest offer, and a type that no catalogue has."""
    (held,) = plan_of(on_aws(max_price=10_000)).held
    assert held.by is HeldBy.DEPENDENCY
    assert "`max_price: 0.01` excludes both remaining offers on demand" in held.detail
    assert "g5.xlarge in us-east-1, costs $1.01/h" in held.detail
    assert held.cure.startswith("write `max_price: 1.006` or more")
    elsewhere = on_aws(
        regions=["us-east-1", "us-west-2"], availability_zones=["us-west-2a"], max_price=9_000_000
    )
    (held,) = plan_of(elsewhere).held
    assert "`availability_zones`" in held.detail
    (held,) = plan_of(on_aws(instance_types=["g5.xlarges"])).held
    assert "no catalogue of offers has the instance type `g5.xlarges`" in held.detail


def test_more_nodes_leave_the_others_as_they_are():
    """Each costs what it was bought for, only the new one is created, and one that was never created costs nothing before."""
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    plan = plan_of(on_aws(2), live)
    (change,) = plan.changes
    assert (change.action, change.destructive) == (Action.UPDATE, False)
    assert plan.annex["hosts_created"] == {"gpus": ["gpus-1"]}
    assert (change.cost_before, change.cost_after) == (526_000, 526_000 + G5_MICROS)
    waiting = replace(bought(1), endpoint={"price_micros": 1, "instance_type": "g5.xlarge"})
    live = replace(ledger(row(on_aws(2))), instances=(bought(0), waiting))
    (change,) = plan_of(on_aws(3), live).changes
    assert (change.cost_before, change.cost_after) == (526_000, 526_000 + 2 * G5_MICROS)


def refused_since(age_ms, *kinds, rows=()):
    """The ledger so long after a cloud has refused types of `AWS`."""
    offers = [
        TriedOffer(
            "gpus", {"instance_type": one, "region": "us-east-1"}, NOW_MS - age_ms, "no capacity"
        )
        for one in kinds
    ]
    return replace(ledger(*rows), tried_offers={"gpus": offers})


def test_a_refused_offer_is_passed_over():
    """The plan shows what is asked for next, at its price, and until when the refused one is not asked for."""
    plan = plan_of(on_aws(1), refused_since(180_000, "g5.xlarge"))
    shown = printed(plan)
    assert "creates: gpus-0 (g5.2xlarge in us-east-1, $1.22/h)" in shown
    assert (
        "refused lately: g5.xlarge in us-east-1, 3m00s ago, not asked for before"
        f" {moment(NOW_MS + 420_000)}: no capacity; `fleetform fleet retry gpus` asks sooner"
        in shown
    )
    assert "next offers" not in shown
    (change,) = plan.changes
    assert change.cost_after == 1_212_000
    (body,) = to_json(plan, version="1")["resource_changes"]
    assert [one["instance_type"] for one in body["offers"]] == ["g5.2xlarge", "g5.xlarge"]
    assert body["offers"][1] == {
        "instance_type": "g5.xlarge",
        "region": "us-east-1",
        "price_micros": G5_MICROS,
        "refused_at_ms": NOW_MS - 180_000,
        "problem": "no capacity",
        "asked_again_at_ms": NOW_MS + 420_000,
    }


def test_a_refusal_passes_and_the_steps_stay():
    """A plan of now may be applied later: its steps have the order of the fleet, and the refused offer is first again by then."""
    before = plan_of(on_aws(1), refused_since(599_999, "g5.xlarge"))
    after = plan_of(on_aws(1), refused_since(600_000, "g5.xlarge"))
    assert before.steps == after.steps == plan_of(on_aws(1)).steps
    assert before.predicates == after.predicates
    assert "g5.xlarge in us-east-1, $1.01/h)" in printed(after)
    assert "refused lately" not in printed(after)
    assert "offers" not in after.annex


def test_a_plan_says_that_all_offers_were_refused():
    """And when the first of them is asked for."""
    shown = printed(plan_of(on_aws(1), refused_since(0, "g5.xlarge", "g5.2xlarge")))
    free = moment(NOW_MS + 600_000)
    assert f"refused lately: all offers, so no host is created before {free}: g5.xlarge" in shown
    assert f"creates: gpus-0 (g5.xlarge in us-east-1, $1.01/h), not before {free}\n" in shown
    assert re.search(f"cost: .*, not before {free}\n", shown)
    assert "not before" not in printed(
        plan_of(on_aws(1), refused_since(600_001, "g5.xlarge", "g5.2xlarge"))
    )


def test_a_range_says_what_was_refused():
    """Its next host is of the next offer, also if the plan creates none."""
    shown = printed(plan_of(by_demand(0, 0, 3), refused_since(0, "g5.xlarge")))
    assert "0 to 3 hosts by demand (g5.2xlarge in us-east-1," in shown
    assert "refused lately: g5.xlarge" in shown


def test_a_fleet_that_creates_no_host_says_nothing_of_refusals():
    """It has its hosts, and asks for none."""
    live = refused_since(0, "g5.xlarge", rows=[row(on_aws(1))])
    live = replace(live, instances=(bought(0),))
    assert "refused lately" not in printed(plan_of(on_aws(1, description="x"), live))


def test_a_new_name_keeps_the_refusals():
    """The ledger knows them by the earlier one."""
    before, after = on_aws(1), fleet("cards", nodes=2, **AWS)
    live = refused_since(0, "g5.xlarge", rows=[row(before)])
    live = replace(live, offers={"cards": offers_of_fleet(after.document)})
    plan = planned(replace(tree(after), moved={before.key: after.key}), live)
    assert [one["instance_type"] for one in plan.annex["offers"]["cards"]] == [
        "g5.2xlarge",
        "g5.xlarge",
    ]


def test_refused_hosts_are_asked_for_again():
    """An apply does it although nothing else has changed, and the others stay as they are."""
    refused = replace(bought(1), endpoint={"is_refused": True, "instance_type": "g5.xlarge"})
    live = replace(ledger(row(on_aws(2))), instances=(bought(0), refused))
    (change,) = plan_of(on_aws(2), live).changes
    assert (change.action, change.destructive, change.fields) == (Action.UPDATE, False, ())
    assert plan_of(on_aws(2), replace(live, instances=(bought(0), bought(1)))).changes == ()


def test_no_nodes_cost_nothing():
    """The fleet stays declared, and all its instances go."""
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    (change,) = plan_of(on_aws(0), live).changes
    assert (change.cost_before, change.cost_after) == (526_000, 0)


def test_another_image_is_another_template():
    """An instance cannot become another one, so it is replaced as `update` says: that ends jobs with `recreate` only."""
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    other = on_aws(1, aws={**AWS["aws"], "image": "ami-2"})
    (change,) = plan_of(other, live).changes
    assert (change.action, change.destructive) == (Action.UPDATE, False)
    assert template_of(other.document) != template_of(on_aws(1).document)
    at_once = on_aws(1, aws={**AWS["aws"], "image": "ami-2"}, update={"strategy": "recreate"})
    (held,) = plan_of(at_once, live).held
    assert (held.by, held.change.action) == (HeldBy.DESTRUCTIVE, Action.UPDATE)


def test_a_host_that_is_replaced_has_its_price():
    """`--replace` buys another one, by the first offer, or by the next ones."""
    live = replace(ledger(row(on_aws(1))), instances=(bought(0),))
    live = replace(live, offers={"gpus": offers_of_fleet(on_aws(1).document)})
    plan = planned(tree(on_aws(1)), live, scope=Scope(replaces=("host/gpus-0",)))
    shown = printed(plan)
    assert "replaces: 1 host: gpus-0 (`--replace` requests a new one); g4dn.xlarge" in shown
    assert "→ g5.xlarge in us-east-1, $1.01/h; image" in shown
    assert "cost: $0.53/h → $1.01/h, up to $1.22/h with the next offers" in shown
    assert "next offers: g5.2xlarge in us-east-1, $1.22/h" in shown


@pytest.mark.parametrize(
    ("hosts", "update", "cost"),
    [
        (1, {}, "$0.53/h → $1.01/h, $1.54/h during the rollout, up to $1.74/h"),
        (3, {"max_unavailable": 2}, "$1.58/h → $3.02/h, $4.07/h during the rollout, up to $4.69/h"),
        (1, {"max_unavailable": 2}, "$0.53/h → $1.01/h, $1.54/h during the rollout, up to $1.74/h"),
        (1, {"strategy": "drain"}, "$0.53/h → $1.01/h, up to $1.22/h"),
    ],
)
def test_hosts_that_exist_at_once_during_a_rollout_have_their_price(hosts, update, cost):
    """`surge` creates as many as `max_unavailable` says before others leave; text, sum and JSON say so."""
    document = {"update": {"strategy": "surge", **update}}
    there = [
        replace(bought(number), template_digest=template_of(on_aws(hosts, **document).document))
        for number in range(hosts)
    ]
    live = replace(ledger(row(on_aws(hosts, **document))), instances=tuple(there))
    plan = plan_of(on_aws(hosts, **document, aws={**AWS["aws"], "image": "ami-2"}), live)
    shown = printed(plan)
    assert f"cost: {cost} with the next offers" in shown
    assert f"Cost of the changed fleets: {cost} with the next offers." in shown
    (body,) = to_json(plan, version="1")["resource_changes"]
    assert ("during" in body["costs"]) == ("during" in cost)


def test_a_fleet_whose_creation_is_not_finished_costs_what_exists():
    """Its hosts that the cloud has created, and nothing before; no field of it is said to change."""
    begun = replace(row(on_aws(2)), document="{}", digest="", state="failed")
    shown = printed(plan_of(on_aws(2), replace(ledger(begun), instances=(bought(0),))))
    assert "cost: $0.53/h → $1.54/h" in shown
    assert "(not set)" not in shown
    assert "cost: $0.00/h → $2.02/h" in printed(plan_of(on_aws(2), ledger(begun)))


def by_demand(least, target, most, **fields):
    return on_aws({"min": least, "target": target, "max": most}, **fields)


def test_a_range_has_its_limits_in_the_step():
    """The step says between which numbers, for how long a host is idle, and by which offer one is created."""
    plan = plan_of(by_demand(0, 0, 3))
    scaling = plan.steps[-1].arguments["scaling"]
    assert places(plan) == []
    assert (scaling["min"], scaling["max"], scaling["idle_seconds"]) == (0, 3, 300)
    assert scaling["host"]["endpoint"]["instance_type"] == "g5.xlarge"
    assert [gpu["name"] for gpu in scaling["host"]["capacity"]["gpus"]] == ["A10G"]
    (change,) = plan.changes
    assert (change.cost_before, change.cost_after, change.cost_max) == (0, 0, 3 * G5_MICROS)
    shown = printed(plan)
    assert "cost: $0.00/h now, up to $3.02/h by demand" in shown
    assert (
        "Cost of the changed fleets: $0.00/h now, up to $3.02/h by demand, up to $3.64/h with the next offers."
        in shown
    )
    assert "next offers: g5.2xlarge in us-east-1, $1.22/h" in shown
    assert "0 to 3 hosts by demand (g5.xlarge in us-east-1, $1.006/h each" in shown
    assert "hosts leave after 5m00s without jobs" in shown
    assert "0 to 1 host by demand (" in printed(plan_of(by_demand(0, 0, 1)))


def test_hosts_of_a_fixed_number_follow_demand_afterwards():
    """The plan says that they leave like those which demand brings in, and how many the fleet keeps."""
    live = replace(ledger(row(on_aws(2))), instances=(bought(0), bought(1)))
    shown = printed(plan_of(by_demand(0, 0, 3), live))
    assert "nodes: 2 → 0..3\n" in shown
    assert "hosts leave after 5m00s without jobs, also the 2 that exist\n" in shown
    shown = printed(plan_of(by_demand(1, 1, 3), live))
    assert "hosts beyond 1 leave after 5m00s without jobs, also the 1 that exists\n" in shown
    stays = printed(plan_of(by_demand(2, 2, 3), live))
    assert "hosts beyond 2 leave after 5m00s without jobs\n" in stays
    more = printed(
        plan_of(
            by_demand(0, 0, 4), replace(live, resources=ledger(row(by_demand(0, 0, 3))).resources)
        )
    )
    assert "nodes: 0..3 → 0..4\n" in more
    assert "hosts leave after 5m00s without jobs\n" in more


def test_without_an_offer_a_range_is_blocked():
    """Also while the fleet has no host."""
    (held,) = plan_of(by_demand(0, 0, 3, max_price=10_000)).held
    assert held.by is HeldBy.DEPENDENCY


def test_a_change_of_a_range_keeps_the_hosts_of_now():
    """Hosts that demand has brought in stay, within the new limits, and cost what they cost."""
    live = replace(ledger(row(by_demand(0, 0, 3))), instances=(bought(1), bought(2)))
    plan = plan_of(by_demand(0, 0, 5), live)
    assert [one["name"] for one in places(plan)] == ["gpus-1", "gpus-2"]
    assert plan.annex.get("hosts_removed") is None
    (change,) = plan.changes
    bought_micros = 2 * 526_000
    assert (change.cost_before, change.cost_after) == (bought_micros, bought_micros)
    assert change.cost_max == bought_micros + 3 * G5_MICROS
    plan = plan_of(by_demand(0, 0, 1), live)
    assert plan.annex["hosts_removed"] == {"gpus": ["gpus-2"]}
    uncreated = tuple(
        replace(one, endpoint={"instance_type": "g5.xlarge"}) if one.number == 2 else one
        for one in live.instances
    )
    shown = printed(plan_of(by_demand(0, 0, 1), replace(live, instances=uncreated)))
    assert "hosts removed: gpus-2 (not created)" in shown
    plan = plan_of(by_demand(3, 3, 5), live)
    assert plan.annex["hosts_created"] == {"gpus": ["gpus-0"]}
    assert plan_of(by_demand(0, 0, 3), live).changes == ()


def test_single_hosts_of_a_range_are_drained():
    """The step has the reasons by name, whether demand has brought the hosts in or not."""
    nodes = {"min": 0, "target": 0, "max": 3}
    drain = [{"reason": "a fan is loud", "hosts": ["gpus-1", "gpus-2"]}]
    before = on_aws(nodes)
    live = replace(ledger(row(before)), instances=(bought(0), bought(1)))
    (change,) = plan_of(on_aws(nodes, drain=drain), live).changes
    arguments = change.steps[-1].arguments
    assert arguments["scaling"]["drained"] == {"gpus-1": "a fan is loud", "gpus-2": "a fan is loud"}
    drained = {one["name"]: one.get("drained", "") for one in arguments["instances"]}
    assert drained == {"gpus-0": "", "gpus-1": "a fan is loud"}
