"""Fields of a fleet on AWS: what is refused, and what is not supported yet."""

from __future__ import annotations

import pytest

from fleetform.spec.desired import ResourceKey
from fleetform.spec.findings import Level
from unit.spec.trees import good, load

AWS = """type: fleet
name: gpus
regions: us-east-1
run_as: owner
aws:
  account: "123456789012"
  ssh_from: [203.0.113.7/32]
  image: ami-0f1e2d3c4b5a69788
"""

TOO_MANY_TAGS = f"{{{', '.join(f'key{number}: x' for number in range(46))}}}"


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
        ('"123456789012"', "012345678901", 'Quote it: `account: "012345678901"`'),
        ("203.0.113.7/32", "0.0.0.0/1", "the largest range is a `/8`"),
        ("203.0.113.7/32", "127.0.0.1/32", "No connection to AWS"),
        ("203.0.113.7/32", "169.254.0.0/16", "No connection to AWS"),
        ("203.0.113.7/32", "203.0.113.7/32, 203.0.113.7", "named twice"),
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
        ("regions", "availability_zones: [us-east-1]\nregions", "a region, not a zone"),
        ("regions", "availability_zones: [us-east-1A]\nregions", "not the name of a zone"),
        ("regions", "retry: {on: [no-capacity, error]}\nregions", "`no-capacity` alone"),
        ("regions", "retry: {max_attempts: 2}\nregions", "every ten minutes"),
        ("regions", "retry: {duration: 5m}\nregions", "`10m` or more"),
        ("regions", "retry: {duration: 0}\nregions", "within a duration of 0"),
        ("regions", "tags: {Name: x}\nregions", "the name of the host"),
        ("regions", f"tags: {TOO_MANY_TAGS}\nregions", "`tags` has 46. Write 45 or fewer."),
        (
            "regions",
            "placement: cluster\ninstance_types: [g5.xlarge, t3.large]\nregions",
            "`t3.large` is a burstable type",
        ),
        (
            "  image",
            "  root_disk: {type: io1, iops: 6000}\n  image",
            "`resources: {disk: 120GB..}`",
        ),
        ("  image", "  root_disk: {iops: 60000}\n  image", "500 iops at most per GB"),
        (
            "regions",
            "reservation: cr-0f1e2d3c\navailability_zones: [us-east-1a]\nregions",
            "one zone",
        ),
        ("  image", "  security_groups: [default]\n  image", "not the id of a security group"),
        ("  image", "  root_disk: {type: io2}\n  image", "needs `iops`"),
        ("  image", "  root_disk: {type: gp2, iops: 3000}\n  image", "has no `iops`"),
        ("  image", "  root_disk: {type: io1, iops: 3000, throughput: 500}\n  image", "Only `gp3`"),
        ("  image", "  root_disk: {iops: 80001}\n  image", "has 80000 iops at most"),
        ("  image", "  root_disk: {throughput: 2001}\n  image", "has 2000 throughput at most"),
        ("  image", "  root_disk: {type: io1, iops: 64001}\n  image", "has 64000 iops at most"),
        ("  image", "  root_disk: {iops: 2999}\n  image", "has 3000 iops at least"),
        ("  image", "  root_disk: {throughput: 800}\n  image", "Add `iops: 3200`"),
        (
            "regions",
            "reservation: conference\navailability_zones: [us-east-1a]\ninstance_types: [g5.xlarge]\nregions",
            "not the id of a capacity reservation on AWS",
        ),
        ("regions", "resources: {disk: 65TB..}\nregions", "`gp3` has 64TB at most"),
        ("regions", "resources: {disk: 1MB..}\nregions", "`gp3` has 1GB at least"),
        ("  image", "  iam_instance_profile: a b\n  image", "cannot be the name"),
        (
            "  image",
            "  iam_instance_profile: arn:aws:iam::1:instance-profile/x\n  image",
            "Write `x`",
        ),
        ("  image", "  security_groups: [sg-0f1e2d3c, sg-0f1e2d3c]\n  image", "named twice"),
    ],
)
def test_refused(tmp_path, old, new, words):
    """Each mistake is an error with a place and words that say what is wrong."""
    loaded = load(tmp_path, AWS.replace(old, new))
    (finding,) = loaded.errors
    assert words in f"{finding.address} {finding.detail} {finding.advice}"


def test_a_burstable_type_is_pointed_at(tmp_path):
    """Of several types the one that no cluster placement group has; without the group it may be declared."""
    text = f"{AWS}instance_types: [g5.xlarge, t3.large]\n"
    (finding,) = load(tmp_path, f"{text}placement: cluster\n").errors
    assert finding.text[finding.place.column - 1 :].startswith("t3.large")
    good(tmp_path, text)


@pytest.mark.parametrize(
    ("disk", "size", "words"),
    [
        ("{type: io2, iops: 3000}", "2GB", "`io2` has 4GB at least"),
        ("{type: io1, iops: 6000}", "100GB", "Write 120GB or more"),
        ("{iops: 80000}", "100GB", "Write 160GB or more"),
    ],
)
def test_the_size_of_a_root_disk_goes_with_its_type(tmp_path, disk, size, words):
    """Some types are larger than others at least, and have operations in proportion."""
    text = f"{AWS}  root_disk: {disk}\nresources: {{disk: {size}..}}\n"
    (finding,) = load(tmp_path, text).errors
    assert words in f"{finding.detail} {finding.advice}"


def test_an_account_with_a_zero_in_front_is_one_finding(tmp_path):
    """The warning of a number with a zero in front would give the same advice."""
    (finding,) = load(tmp_path, AWS.replace('"123456789012"', "012345670123")).findings
    assert finding.advice == 'Quote it: `account: "012345670123"`.'


def test_whose_jobs_run_is_said(tmp_path):
    """The images of AWS have no accounts of persons, so the default would leave all runs waiting."""
    (finding,) = load(tmp_path, AWS.replace("run_as: owner\n", "")).findings
    assert (finding.level, finding.code, finding.place.line) == (Level.WARNING, "missing-field", 4)
    assert finding.advice.startswith("Write `run_as: root`")


def test_zones_have_several_forms(tmp_path):
    """Local zones and those of Wavelength as well."""
    zones = "[us-east-1a, us-east-1-bos-1a, us-east-1-wl1-bos-wlz-1]"
    good(tmp_path, f"{AWS}availability_zones: {zones}\n")


def test_a_fixed_number_of_hosts_has_no_idle_duration(tmp_path):
    """None of them is ever released."""
    (finding,) = load(tmp_path, f"{AWS}idle_duration: 5m\n").findings
    assert (finding.level, finding.code) == (Level.WARNING, "contradiction")
    for nodes in ("0..2", "0..0"):
        assert not load(tmp_path, f"{AWS}idle_duration: 5m\nnodes: {nodes}\n").findings
    # What is wrong there is the number, and nothing is known of it.
    (wrong,) = load(tmp_path, f"{AWS}idle_duration: 5m\nnodes: 0..0..3\n").findings
    assert wrong.level is Level.ERROR


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
