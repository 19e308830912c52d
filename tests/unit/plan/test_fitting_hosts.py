"""Which instances of a cloud stay when their fleet declares other regions, zones, types or resources."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker.check import check
from fleetform.model.instance import InstanceState
from fleetform.model.offers import CHOSEN_ZONE
from fleetform.model.plan import Permissions
from fleetform.model.rollout import SURGE
from fleetform.plan.kinds.fleet import template_of
from unit.plan.test_offers import AWS, bought, on_aws, plan_of, printed
from unit.plan.trees import ledger, row, tree

BEFORE = {"instance_types": ["g5.xlarge", "g5.2xlarge"]}


def there(**declared):
    """A fleet with a host of each of two types, of its template."""
    before = on_aws(**{**BEFORE, **declared})
    hosts = [
        replace(
            bought(number), state=InstanceState.READY, template_digest=template_of(before.document),
            install_id="a",
            endpoint={"id": f"i-{number}", "region": "us-east-1", "zone": "us-east-1a", "instance_type": kind},
        )
        for number, kind in enumerate(BEFORE["instance_types"])
    ]  # fmt: skip
    return replace(ledger(row(before)), instances=tuple(hosts))


def hosts_of(plan):
    (change,) = plan.changes
    arguments = change.steps[-1].arguments
    return arguments.get("keeps", []), arguments.get("unfit", {})


@pytest.mark.parametrize(
    "more",
    [
        {"regions": ["us-east-1", "us-west-2"]},
        {"instance_types": ["g5.xlarge", "g5.2xlarge", "g5.4xlarge"]},
        {"availability_zones": ["us-east-1a", "us-east-1b"]},
        {"resources": {"cpu": {"min": 4000}}},
    ],
)
@pytest.mark.parametrize("strategy", ["drain", "recreate"])
def test_what_still_fits_stays(more, strategy):
    """Lists that become longer, or another condition that the hosts satisfy, replace nothing and destroy nothing."""
    update = {"update": {"strategy": strategy}}
    declared = on_aws(**{**BEFORE, **more, **update})
    plan = plan_of(declared, there(**update))
    assert hosts_of(plan) == (["u0", "u1"], {})
    assert not plan.changes[0].destructive
    assert "replaces" not in printed(plan)


@pytest.mark.parametrize(
    ("declared", "replaced"),
    [
        ({"instance_types": ["g5.xlarge"]}, {"gpus-1": "g5.2xlarge is no longer in `instance_types`"}),
        (
            {"resources": {"cpu": {"min": 8000}}},
            {"gpus-0": "g5.xlarge no longer satisfies the fleet"},
        ),
        (
            {"availability_zones": ["us-east-1b"]},
            dict.fromkeys(("gpus-0", "gpus-1"), "us-east-1a is not in `availability_zones`"),
        ),
        (
            {"aws": {"account": "123456789012", "ssh_from": ["203.0.113.7/32"], "image": "ami-2"}},
            dict.fromkeys(("gpus-0", "gpus-1"), "`aws.image` changes"),
        ),
        (
            {"sharing": "whole", "placement": "cluster"},
            dict.fromkeys(("gpus-0", "gpus-1"), "`placement`, `sharing` change"),
        ),
    ],
)  # fmt: skip
def test_what_no_longer_fits_is_replaced(declared, replaced):
    """The plan names the hosts and says why."""
    live = there()
    after = on_aws(**{**BEFORE, **declared})
    plan = plan_of(after, live)
    assert hosts_of(plan)[1] == replaced
    text = printed(plan)
    assert all(f"{name}" in text and why in text for name, why in replaced.items())
    assert check(plan, tree(after), live, Permissions()) == ()


def test_only_replaced_hosts_are_at_stake():
    """With `recreate` their jobs end, and those on the hosts that stay do not."""
    update = {"update": {"strategy": "recreate"}}
    live = there(**update)
    after = on_aws(instance_types=["g5.xlarge"], **update)
    plan = plan_of(after, live, destroy=False)
    (change,) = [one.change for one in plan.held] or plan.changes
    assert "host gpus-1 and all jobs there" in change.at_stake
    assert change.destructive


def test_a_region_that_is_removed_replaces_its_hosts():
    """A host of another region stays."""
    live = there(regions=["us-east-1", "us-west-2"])
    first, second = live.instances
    west = {**second.endpoint, "region": "us-west-2", "zone": "us-west-2a"}
    live = replace(live, instances=(first, replace(second, endpoint=west)))
    plan = plan_of(on_aws(**BEFORE), live)
    assert hosts_of(plan) == (["u0"], {"gpus-1": "us-west-2 is no longer in `regions`"})


def test_a_zone_that_the_cloud_has_chosen():
    """A fleet that names zones for the first time keeps the hosts that are in one of them."""
    live = there()
    first, second = (
        replace(one, endpoint={**one.endpoint, "zone": "", CHOSEN_ZONE: zone})
        for one, zone in zip(live.instances, ("us-east-1a", "us-east-1c"), strict=True)
    )
    live = replace(live, instances=(first, second))
    plan = plan_of(on_aws(**BEFORE, availability_zones=["us-east-1a"]), live)
    replaced = {"gpus-1": "us-east-1c is not in `availability_zones`"}
    assert hosts_of(plan) == (["u0"], replaced)


def test_a_host_is_removed_or_replaced():
    """With fewer hosts and another image, each host has one of the two fates, and only the one that is replaced is counted for it."""
    declared = on_aws(1, **BEFORE, aws={**AWS["aws"], "image": "ami-2"})
    plan = plan_of(declared, there())
    assert hosts_of(plan) == ([], {"gpus-0": "`aws.image` changes"})
    assert plan.annex["hosts_removed"] == {"gpus": ["gpus-1"]}
    shown = printed(plan)
    assert "hosts removed: gpus-1" in shown
    assert "replaces: 1 host: gpus-0 (`aws.image` changes);" in shown


def test_a_replacement_says_what_the_new_hosts_are():
    """Type and price of the earlier and the new hosts, the image where it is looked up again, and what is asked for if that is refused."""
    live = there()
    hosts = [
        replace(one, endpoint={**one.endpoint, "zone": "", "image": "ami-9", "price_micros": 1_006_000})
        for one in live.instances
    ]  # fmt: skip
    live = replace(live, instances=tuple(hosts))
    larger = on_aws(instance_types=["g5.2xlarge", "g5.4xlarge"])
    shown = printed(plan_of(larger, live))
    old, new = "g5.xlarge in us-east-1, $1.01/h", "g5.2xlarge in us-east-1, $1.22/h"
    assert f"; {old} → {new}; image ami-9; drain, 1 at a time" in shown
    assert "next offers: g5.4xlarge in us-east-1, $1.63/h" in shown
    other = on_aws(**BEFORE, aws={**AWS["aws"], "image": "ami-2"})
    assert "image ami-9 → ami-2; drain" in printed(plan_of(other, live))
    aws = {name: value for name, value in AWS["aws"].items() if name != "image"}
    shown = printed(plan_of(on_aws(**BEFORE, aws={**aws, "image_renewal": 1}), live))
    assert "image ami-9 → newest of /aws/service/deeplearning/ami/x86_64/" in shown


def test_a_host_that_came_early_leaves_if_the_template_comes_back():
    """It is removed and replaced by no other; while its place has no host of the template, it is replaced and not removed."""
    old, new = on_aws(), on_aws(aws={**AWS["aws"], "image": "ami-2"})
    hosts = [
        replace(
            bought(number), name=name, state=InstanceState.READY, install_id="a",
            template_digest=template_of(one.document),
        )
        for number, name, one in ((0, "gpus-0", old), (SURGE, "gpus-0-new", new))
    ]  # fmt: skip
    live = replace(ledger(row(new)), instances=tuple(hosts))
    plan = plan_of(old, live)
    assert plan.annex["hosts_removed"] == {"gpus": ["gpus-0-new"]}
    assert hosts_of(plan) == ([], {})
    third = plan_of(on_aws(aws={**AWS["aws"], "image": "ami-3"}), live)
    assert "hosts_removed" not in third.annex
    assert hosts_of(third)[1] == {"gpus-0-new": "`aws.image` changes"}
