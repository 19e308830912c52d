"""The rules that every host, disk and shared part of AWS keeps."""

from __future__ import annotations

import dataclasses
import inspect
import re
import warnings

import pytest

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.pulumi.aws.program import (
    ADDRESS,
    AwsAccount,
    Batch,
    DiskRequest,
    HostTemplate,
    NewHost,
    SharedParts,
    SharedRequest,
    batch_program,
    host_uid,
    shared_program,
    volume_program,
)
from fleetform.providers.pulumi.engine.program import output_of, secret
from fleetform.spec.kinds.fleet_on_aws import TAGS_MAX

ACCOUNT = AwsAccount("eu-west-1", "123456789012", "e1", "7.51.0")
SHARED = SharedRequest("f" * 32, "gpus", "o1", ("203.0.113.7/32",), "ssh-ed25519 AAAA")
PARTS = SharedParts("sg-1", "fleetform-gpus", "group-1")
TEMPLATE = HostTemplate("g5.xlarge", "ami-1", 100, subnet="subnet-1")
HOSTS = tuple(NewHost(f"u{number}", f"gpus-{number}", "o1", "#cloud-config") for number in range(3))
BATCH = Batch("b1", "gpus", TEMPLATE, HOSTS)
DISK = DiskRequest("v1", "data", "eu-west-1a", 500)


def batch(**changes):
    return dataclasses.replace(BATCH, template=dataclasses.replace(TEMPLATE, **changes))


def hosts(program):
    return [one for one in program.resources if one.type.endswith(":Instance")]


PROGRAMS = {
    "shared": shared_program(ACCOUNT, dataclasses.replace(SHARED, is_cluster=True, vpc="vpc-1")),
    "batch": batch_program(ACCOUNT, batch(spot=True, price_max="1.5", zone="a"), PARTS),
    "reserved": batch_program(ACCOUNT, batch(reservation="cr-1", profile="p"), PARTS),
    "cards": batch_program(ACCOUNT, batch(network_cards=4, efa=True), PARTS),
    "volume": volume_program(ACCOUNT, DISK),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_whatever_has_tags_says_whose_it_is(program):
    """Everything is found by its tags."""
    for one in program.resources:
        if one.is_provider:
            assert one.properties["allowedAccountIds"] == ["123456789012"]
            assert not {"accessKey", "secretKey", "token"} & set(one.properties)
        else:
            tags = one.properties["tags"]
            assert tags["fleetform:environment"] == "e1"
            assert tags["fleetform:operation"] in {"o1", "v1"}
            assert tags["fleetform:uid"]
    assert program.plugin_versions == {"aws": "7.51.0"}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_plugin_knows_each_property(program):
    """By the inputs of the classes that its schema generates."""
    for one in program.resources:
        accepted = _accepted(one.type)
        unknown = {name for name in one.properties if _snake(name) not in accepted}
        assert not unknown, one.type


def _accepted(kind: str) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # It warns of names of its own.
        from pulumi_aws import Provider, ebs, ec2

        ec2.Instance, ebs.Volume  # noqa: B018 -- loaded at the first use

    if kind.startswith("pulumi:providers:"):
        made = Provider
    else:
        module, _, name = kind.removeprefix("aws:").partition("/")
        made = getattr({"ec2": ec2, "ebs": ebs}[module], name.partition(":")[2])
    return set(inspect.signature(made._internal_init).parameters)


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def test_every_host_keeps_the_rules():
    """Metadata by token for the host alone, an end at shutdown, an encrypted disk that goes too."""
    first, *others = hosts(PROGRAMS["batch"])
    properties = first.properties
    assert properties["metadataOptions"] == {
        "httpEndpoint": "enabled",
        "httpTokens": "required",
        "httpPutResponseHopLimit": 1,
    }
    assert properties["instanceInitiatedShutdownBehavior"] == "terminate"
    disk = properties["rootBlockDevice"]
    assert (disk["volumeSize"], disk["encrypted"], disk["deleteOnTermination"]) == (100, True, True)
    assert properties["userData"] == secret("#cloud-config")
    assert first.ignore == ("userData",)
    assert properties["placementGroup"] == "group-1"
    assert [one.name for one in (first, *others)] == ["u0", "u1", "u2"]


def test_spot_and_reservations_are_asked_for():
    """A spot host is not started again after an interruption."""
    market = hosts(PROGRAMS["batch"])[0].properties["instanceMarketOptions"]
    assert market["marketType"] == "spot"
    assert market["spotOptions"]["instanceInterruptionBehavior"] == "terminate"
    assert market["spotOptions"]["maxPrice"] == "1.5"
    reserved = hosts(PROGRAMS["reserved"])[0].properties["capacityReservationSpecification"]
    assert reserved == {"capacityReservationTarget": {"capacityReservationId": "cr-1"}}


def test_several_network_cards_get_no_public_address():
    """EC2 refuses it; each card has an interface, by a launch template."""
    (template,) = [one for one in PROGRAMS["cards"].resources if one.name == "interfaces"]
    interfaces = template.properties["networkInterfaces"]
    assert [one["networkCardIndex"] for one in interfaces] == [0, 1, 2, 3]
    assert [one["deviceIndex"] for one in interfaces] == [0, 1, 1, 1]
    assert {one["interfaceType"] for one in interfaces} == {"efa"}
    assert not [one for one in interfaces if "associatePublicIpAddress" in one]
    properties = hosts(PROGRAMS["cards"])[0].properties
    assert properties["launchTemplate"]["id"] == output_of("interfaces")
    assert not {"associatePublicIpAddress", "subnetId", "vpcSecurityGroupIds"} & set(properties)


def test_several_network_cards_get_an_elastic_ip():
    """For the first interface of each host, unless the fleet wants no public addresses."""
    made = [one for one in PROGRAMS["cards"].resources if one.type == ADDRESS]
    assert [host_uid(one.name) for one in made] == ["u0", "u1", "u2"]
    assert made[0].properties["networkInterface"] == output_of("u0", "primaryNetworkInterfaceId")
    assert made[0].properties["tags"]["fleetform:uid"] == "u0"
    private = batch_program(ACCOUNT, batch(network_cards=4, public_address=False), PARTS)
    single = batch_program(ACCOUNT, batch(network_cards=1, efa=True), PARTS)
    assert not [one for one in (*private.resources, *single.resources) if one.type == ADDRESS]


def test_a_fleet_is_open_inside_and_for_ssh():
    """All traffic in the group, in both directions, and SSH from the given addresses."""
    (group,) = [one for one in PROGRAMS["shared"].resources if one.name == "security-group"]
    ssh, inside = group.properties["ingress"]
    assert (ssh["fromPort"], ssh["toPort"], ssh["cidrBlocks"]) == (22, 22, ["203.0.113.7/32"])
    assert (inside["protocol"], inside["self"]) == ("-1", True)
    assert [one.get("self", False) for one in group.properties["egress"]] == [False, True]
    assert group.properties["vpcId"] == "vpc-1"


@pytest.mark.parametrize("ssh_from", [(), ("0.0.0.0/0",), ("10.0.0.0/8", "::/0")])
def test_ssh_is_not_open_to_everyone(ssh_from):
    """Nor to addresses that are not said."""
    with pytest.raises(PermanentError) as refused:
        shared_program(ACCOUNT, dataclasses.replace(SHARED, ssh_from=ssh_from))
    assert "ssh_from" in refused.value.advice


def test_a_batch_that_shrinks_changes_no_other_host():
    """What remains has the same entries, so a preview shows deletes only."""
    smaller = batch_program(ACCOUNT, dataclasses.replace(BATCH, hosts=HOSTS[1:]), PARTS)
    all_hosts = batch_program(ACCOUNT, BATCH, PARTS).resources
    assert [one for one in all_hosts if one.name != "u0"] == list(smaller.resources)


def test_a_batch_has_at_most_a_hundred_hosts():
    """More are several batches, which are faster."""
    many = tuple(dataclasses.replace(HOSTS[0], uid=f"u{number}") for number in range(101))
    with pytest.raises(AssertionError, match="101 hosts"):
        batch_program(ACCOUNT, dataclasses.replace(BATCH, hosts=many), PARTS)


def test_a_volume_is_protected():
    """The engine refuses to delete it, and to replace it."""
    _, volume = PROGRAMS["volume"].resources
    assert volume.protect
    assert volume.properties["encrypted"]


@pytest.mark.parametrize("cards", [1, 4])
def test_further_security_groups(cards):
    """They are on each interface, beside the group of the fleet."""
    made = batch_program(ACCOUNT, batch(groups=("sg-2",), network_cards=cards), PARTS)
    said = hosts(made)[0].properties
    interfaces = [
        network["securityGroups"]
        for one in made.resources
        if one.name == "interfaces"
        for network in one.properties["networkInterfaces"]
    ]
    assert (interfaces or [said["vpcSecurityGroupIds"]]) == [["sg-1", "sg-2"]] * cards


def test_an_instance_has_room_for_the_tags_of_its_fleet():
    """AWS has 50 at most, and validation leaves so many to a fleet."""
    first, *_ = hosts(PROGRAMS["batch"])
    assert len(first.properties["tags"]) + TAGS_MAX == 50
