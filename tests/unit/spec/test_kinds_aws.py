"""Fields of a fleet on AWS: what is refused, and what is not supported yet."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from unit.spec.trees import good, load

AWS = """type: fleet
name: gpus
regions: us-east-1
aws:
  account: "123456789012"
  ssh_from: [203.0.113.7/32]
  image: ami-0f1e2d3c4b5a69788
"""


def test_a_fleet_on_aws_is_carried_out(tmp_path):
    """Region, account, image and who may connect are enough."""
    desired = good(tmp_path, AWS)
    assert not desired.beyond
    document = desired.resources[ResourceKey("fleet", "gpus")].document
    assert document["aws"]["ssh_from"] == ["203.0.113.7/32"]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("203.0.113.7/32", "0.0.0.0/0", "every address of the internet"),
        ("203.0.113.7/32", "203.0.113.7/24", "not a range of addresses"),
        ("203.0.113.7/32", "2001:db8::/64", "IPv6"),
        ("203.0.113.7/32", "", ""),
        ('"123456789012"', '"12"', "which has 12 digits"),
        ('"123456789012"', "123456789012", 'Quote it: `account: "123456789012"`'),
        ('"123456789012"', "0o123", "Quote it"),
        ('"123456789012"', "012345678901", "12 digits"),
        ("ami-0f1e2d3c4b5a69788", "ubuntu", "neither the id of an image"),
        ("  image", "  vpc: main\n  image", "not the id of a VPC"),
        ("  image", "  subnet: subnet-XYZ\n  image", "such as `subnet-0f1e2d3c4b5a69788`"),
        ("ami-0f1e2d3c4b5a69788", "ami-0f1e2d3c4b5a69788\n  image_renewal: 1", "for ever"),
        ("regions: us-east-1\n", "", "`regions`, which is missing"),
        ("regions", "price: 2\nregions", "that of its offer"),
        ("regions", "backends: [gcp]\nregions", "`backends` names `gcp`"),
        ("regions", "backend_options: {type: vastai}\nregions", "on AWS"),
        ("regions: us-east-1", "regions: [us-east-1, us-west-2]", "The id is of one region"),
        ("regions", "availability_zones: [us-west-2a]\nregions", "in none of the `regions`"),
        ("regions", "retry: {on: [error]}\nregions", "`no-capacity` alone"),
        ("regions", "retry: {max_attempts: 2}\nregions", "every ten minutes"),
        ("regions", "tags: {Name: x}\nregions", "the name of the host"),
        ("regions", "reservation: cr-1\navailability_zones: [us-east-1a]\nregions", "one zone"),
        ("  image", "  security_groups: [default]\n  image", "not the id of a security group"),
        ("  image", "  root_disk: {type: io2}\n  image", "needs `iops`"),
        ("  image", "  root_disk: {type: gp2, iops: 3000}\n  image", "has no `iops`"),
        ("  image", "  root_disk: {type: io1, iops: 3000, throughput: 500}\n  image", "Only `gp3`"),
        ("  image", "  root_disk: {iops: 80001}\n  image", "has 80000 iops at most"),
        ("  image", "  root_disk: {throughput: 2001}\n  image", "has 2000 throughput at most"),
        ("  image", "  root_disk: {type: io1, iops: 64001}\n  image", "has 64000 iops at most"),
        ("regions", "resources: {disk: 65TB..}\nregions", "`gp3` has 64TB at most"),
    ],
)
def test_refused(tmp_path, old, new, words):
    """Each mistake is an error with a place and words that say what is wrong."""
    loaded = load(tmp_path, AWS.replace(old, new))
    (finding,) = loaded.errors
    assert words in f"{finding.address} {finding.detail} {finding.advice}"


def test_a_subnet_is_in_one_zone(tmp_path):
    """Hosts may come from several zones only where the cloud chooses the subnet."""
    zones = f"{AWS}  subnet: subnet-0f1e2d3c\navailability_zones: [us-east-1a, us-east-1b]\n"
    (finding,) = load(tmp_path, zones).errors
    assert "The id is of one zone" in finding.detail


@pytest.mark.parametrize(
    "more",
    [
        "resources: {shm_size: 8GB}",
    ],
)
def test_not_supported_yet(tmp_path, more):
    """What nothing acts on yet blocks the fleet."""
    loaded = load(tmp_path, f"{AWS}{more}\n")
    assert [one.code for one in loaded.findings] == ["not-supported"]
    assert list(loaded.desired.beyond) == [ResourceKey("fleet", "gpus")]
