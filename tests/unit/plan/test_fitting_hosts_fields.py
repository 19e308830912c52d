"""For each field of a fleet on AWS: a change does to its hosts what the reference says."""

from __future__ import annotations

import pytest

from fleetform.plan.kinds.fleet import elsewhere
from fleetform.spec import fields
from fleetform.spec.fields import OnChange
from fleetform.spec.kinds.aws import AwsHosts
from fleetform.spec.kinds.fleet import SOURCES, Fleet
from unit.plan.test_fitting_hosts import BEFORE, hosts_of, there
from unit.plan.test_offers import AWS, on_aws, plan_of, printed
from unit.plan.trees import fleet, ledger, planned, row, tree

EAST, OTHER = ["us-east-1a", "us-east-1b"], ["us-east-1b"]

CHANGES = {
    "availability_zones": (EAST, OTHER),
    "aws.account": (None, "210987654321"),
    "aws.host_key": ("user-data", "console"),
    "aws.iam_instance_profile": (None, "training"),
    "aws.image": (None, "ami-2"),
    "aws.image_renewal": (0, 1),
    "aws.orphan_after": (86_400, 7200),
    "aws.proxy_jump": (None, {"hostname": "jump.example.com"}),
    "aws.public_ips": (True, False),
    "aws.root_disk": (None, {"type": "gp2"}),
    "aws.security_groups": (None, ["sg-0f1e2d3c"]),
    "aws.ssh_from": (None, ["198.51.100.9/32", "203.0.113.7/32"]),
    "aws.subnet": (None, "subnet-0f1e2d3c"),
    "aws.vpc": (None, "vpc-0f1e2d3c"),
    "backends": (None, ["aws"]),
    "blocks": (None, 2),
    "description": (None, "Training"),
    "drain": (None, [{"reason": "New disks"}]),
    "env": ({"A": "1"}, {"A": "2"}),
    "gpu_isolation": (None, "advisory"),
    "idle_duration": (300, 600),
    "ignore": (None, ["env.B"]),
    "initial": (None, ["env.B"]),
    "instance_types": (None, ["g5.2xlarge"]),
    "max_price": (None, 2_000_000),
    "nodes": (2, 3),
    "placement": ("any", "cluster"),
    "protect": (None, True),
    "regions": (None, ["us-east-2"]),
    "reservation": (None, "cr-0f1e2d3c4b5a69788"),
    "resources": (None, {"cpu": {"min": 8000}}),
    "resources.disk": ({"min": 100 << 30}, {"min": 200 << 30}),
    "retry": (None, {"on": ["no-capacity"], "duration": 3600}),
    "run_as": (None, "agent"),
    "runtime": (None, "process"),
    "sharing": ("exact", "whole"),
    "spot_policy": ("on-demand", "auto"),
    "tags": ({"team": "vision"}, {"team": "speech"}),
    "update": (None, {"max_unavailable": 2}),
}
"""By path: the value before and after; None: the field is not set, or is as in `AWS` and `BEFORE`."""

OF_EXISTING_HOSTS = {"aws.proxy_jump", "aws.ssh_from", "retry"}
"""Fields of what an instance is created by that hold for existing ones as well: the apply reaches them by it."""

REPLACED = {OnChange.HOSTS, OnChange.UNFIT_HOSTS}


def paths():
    """All fields that a fleet on AWS may have, and those of `aws`."""
    excluded = {*SOURCES, *SOURCES["aws"].unfit, "name", "price", "type"}
    return {
        *(name for name in Fleet.model_fields if name not in excluded),
        *(f"aws.{name}" for name in AwsHosts.model_fields),
    }


def declared(path, value):
    """Return the fields of a fleet that differ for one value."""
    top, _, name = path.partition(".")
    if value is None:
        return {}
    if not name:
        return {path: value}
    return {top: {**(AWS["aws"] if top == "aws" else {}), name: value}}


def test_each_field_is_tried():
    """A new field is in the table above."""
    assert paths() == {path for path in CHANGES if path != "resources.disk"}


@pytest.mark.parametrize("path", sorted(CHANGES))
def test_a_change_does_what_the_reference_says(path):
    """Hosts are replaced for the fields of which that is said, and stay for all others."""
    before, after = CHANGES[path]
    live = there(**declared(path, before))
    plan = plan_of(on_aws(**{**BEFORE, **declared(path, after)}), live)
    kept, replaced = hosts_of(plan)
    on_change = fields.row("fleet", path).on_change
    assert bool(replaced) == (on_change in REPLACED), on_change
    text = printed(plan)
    assert ("its hosts are replaced" in text) == bool(replaced)
    later = f"applies to hosts that are created later: `{path}"
    assert (later in text) == (on_change is OnChange.NEW_HOSTS)
    if on_change is OnChange.HOSTS:
        assert set(replaced.values()) == {f"`{path}` changes"}
        assert "2 hosts: gpus-0, gpus-1 (" in text
    elif on_change not in REPLACED and kept:
        assert kept == ["u0", "u1"]


@pytest.mark.parametrize("path", sorted(CHANGES))
def test_what_is_updated_in_place_is_no_part_of_a_new_instance(path):
    """A field that only instances created later have is not said to be updated in place."""
    endpoints = [
        elsewhere(on_aws(**{**BEFORE, **declared(path, value)}).document)["endpoint"]
        for value in CHANGES[path]
    ]
    if fields.row("fleet", path).on_change is OnChange.UPDATE and path not in OF_EXISTING_HOSTS:
        assert endpoints[0] == endpoints[1]


def test_other_fields_beside_those_of_later_hosts_are_updated_in_place():
    """The plan says both, and of a fleet without instances neither."""
    before = {"tags": {"team": "vision"}}
    plan = plan_of(on_aws(**BEFORE, nodes=3, tags={"team": "speech"}), there(**before))
    sentence = "updated in place; applies to hosts that are created later: `tags.team`"
    assert sentence in printed(plan)
    local = planned(tree(fleet("f", tags={"a": "b"})), ledger(row(fleet("f"))))
    assert "~ fleet f  updated in place\n" in printed(local)


@pytest.mark.parametrize(
    ("path", "default"),
    [
        ("aws.image_renewal", 0),
        ("aws.orphan_after", 86_400),
        ("aws.public_ips", True),
        ("placement", "any"),
        ("sharing", "exact"),
        ("blocks", 1),
        ("resources.disk", {"min": 100 << 30}),
    ],
)
def test_to_write_down_a_default_replaces_nothing(path, default):
    """The hosts were created by it."""
    plan = plan_of(on_aws(**{**BEFORE, **declared(path, default)}), there())
    assert hosts_of(plan)[1] == {}
    assert "replace" not in printed(plan)
