"""What an account is asked before a batch, and which quota of vCPUs an instance counts for."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from cloud import catalog
from fleetform.providers.contract.errors import NoCapacity, PermanentError, QuotaExceeded
from fleetform.providers.offers.catalogue import offers
from fleetform.providers.pulumi.aws.batch_record import BatchRecord
from fleetform.providers.pulumi.aws.preflight import (
    quota_code,
    require_disk,
    require_ready,
)
from fleetform.providers.pulumi.aws.program import (
    AwsAccount,
    DiskRequest,
    HostTemplate,
    SharedRequest,
)


@pytest.mark.parametrize(
    ("instance_type", "on_demand", "spot"),
    [
        ("g5.xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("gr6.4xlarge", "L-DB2E81BA", "L-3819A6DF"),
        ("p4d.24xlarge", "L-417A185B", "L-7212CCBC"),
        ("p5en.48xlarge", "L-417A185B", "L-C4BD4855"),
        ("m6i.xlarge", "L-1216C47A", "L-34B43A08"),
        ("is4gen.large", "L-1216C47A", "L-34B43A08"),
        ("x2idn.16xlarge", "L-7295265B", "L-E3A00192"),
        ("hpc7g.4xlarge", "", ""),
        ("u-6tb1.metal", "", ""),
    ],
)
def test_types_count_for_a_quota(instance_type, on_demand, spot):
    """By the letters before the number; a type with a quota of its own is left to EC2."""
    assert quota_code(instance_type, spot=False) == on_demand
    assert quota_code(instance_type, spot=True) == spot


@pytest.mark.parametrize("spot", [False, True])
def test_the_cloud_of_the_tests_agrees(spot):
    """For each type with GPUs of the catalogue."""
    types = {one.instance_type for one in offers("aws") if one.gpu_count}
    for one in types:
        assert quota_code(one, spot=spot) == catalog.quota_code(one, spot=spot), one


class Account:
    """
    An account with some addresses in use; `asked` are the calls, and `made` the services of the clients.

    `answers` are those of some calls in place of the usual ones; a text is the code of a refusal.
    """

    def __init__(self, monkeypatch, addresses=0, vpcs=("vpc-1",), **answers):
        self.made, self.asked, self._addresses, self._vpcs = [], [], addresses, vpcs
        self._answers = answers
        monkeypatch.setattr("boto3.client", self._client)

    def _client(self, service, **_):
        self.made.append(service)
        answers = {
            "get_caller_identity": {"Account": "123456789012"},
            "get_role": {"Role": {}},
            "get_service_quota": {"Quota": {"QuotaName": "EC2-VPC Elastic IPs", "Value": 5.0}},
            "describe_addresses": {"Addresses": [{}] * self._addresses},
            "describe_vpcs": {"Vpcs": [{"VpcId": one} for one in self._vpcs]},
            "describe_availability_zones": {"AvailabilityZones": [{"ZoneName": "us-east-1a"}]},
            "describe_images": {"Images": [{"Architecture": "x86_64"}]},
            "describe_capacity_reservations": {},
            "describe_snapshots": {},
        }
        page = {
            "Reservations": [],
            "InstanceTypes": [],
            "InstanceTypeOfferings": [{"Location": "us-east-1"}, {"Location": "us-east-1a"}],
            **self._answers,
        }
        pages = SimpleNamespace(paginate=lambda **_: [page])
        answers |= self._answers
        calls = {name: self._call(name, answer) for name, answer in answers.items()}
        return SimpleNamespace(get_paginator=lambda _: pages, **calls)

    def _call(self, name, answer):
        def call(**_):
            self.asked.append(name)
            if isinstance(answer, str):
                raise ClientError({"Error": {"Code": answer, "Message": "no"}}, name)
            return answer

        return call


SHARED = SharedRequest("u", "gpus", "o", ("203.0.113.7/32",), "key")


def batch(**template):
    said = HostTemplate("p4d.24xlarge", "ami-1", 100, network_cards=4, efa=True, **template)
    account = AwsAccount("us-east-1", "123456789012", "e1")
    return BatchRecord("s", "gpus", account, said, "shared", {"u1": "gpus-0", "u2": "gpus-1"})


def test_a_batch_asks_with_one_client_for_each_service(monkeypatch):
    """And once whose the credentials are."""
    account = Account(monkeypatch, addresses=0)
    require_ready(batch(spot=True), SHARED)
    assert sorted(account.made) == ["ec2", "iam", "service-quotas", "sts"]
    assert account.asked.count("get_caller_identity") == 1


@pytest.mark.parametrize(
    ("used", "public", "is_refused"), [(3, True, False), (4, True, True), (4, False, False)]
)
def test_addresses_are_counted(monkeypatch, used, public, is_refused):
    """Each host with several interfaces needs one, unless the fleet wants none."""
    Account(monkeypatch, addresses=used)
    if not is_refused:
        require_ready(batch(public_address=public), SHARED)
        return
    with pytest.raises(QuotaExceeded, match="Elastic IP addresses needed: 2") as refused:
        require_ready(batch(public_address=public), SHARED)
    assert "aws.proxy_jump" in refused.value.advice


def test_a_region_without_a_default_vpc(monkeypatch):
    """It is needed unless the fleet names a VPC."""
    Account(monkeypatch, vpcs=())
    with pytest.raises(PermanentError, match="in us-east-1 has no default VPC") as refused:
        require_ready(batch(public_address=False), SHARED)
    assert "aws.vpc" in refused.value.advice
    require_ready(batch(public_address=False), replace(SHARED, vpc="vpc-2"))


ARM = {"ProcessorInfo": {"SupportedArchitectures": ["arm64"]}}
RESERVED = {
    "State": "active",
    "InstanceType": "p4d.24xlarge",
    "AvailabilityZone": "us-east-1a",
    "AvailableInstanceCount": 1,
    "TotalInstanceCount": 2,
}


def reserved(**other):
    return {"describe_capacity_reservations": {"CapacityReservations": [{**RESERVED, **other}]}}


ZONED = {"zone": "us-east-1a", "reservation": "cr-1"}


@pytest.mark.parametrize(
    ("template", "answers", "what", "advice"),
    [
        ({}, {"describe_images": "InvalidAMIID.NotFound"}, "has no image ami-1", "`aws.image`"),
        ({}, {"describe_images": {"Images": []}}, "has no image ami-1", "`aws.image`"),
        ({}, {"describe_images": {"Images": [{"State": "pending"}]}}, "image ami-1 is pending", "wait"),
        ({}, {"InstanceTypes": [ARM]}, "image ami-1 is for x86_64, and p4d.24xlarge has processors of arm64", "an image for arm64"),
        ({"zone": "us-east-1z"}, {}, "in us-east-1 has no availability zone us-east-1z", "there are us-east-1a"),
        (ZONED, {"describe_capacity_reservations": "InvalidCapacityReservationId.NotFound"}, "has no capacity reservation cr-1", "`reservation`"),
        (ZONED, reserved(State="expired"), "cr-1 is expired", "`reservation`"),
        (ZONED, reserved(InstanceType="g5.xlarge"), "is of g5.xlarge in us-east-1a, and the hosts are p4d.24xlarge in us-east-1a", "`instance_types`"),
    ],
)  # fmt: skip
def test_what_a_fleet_names_exists_and_fits(monkeypatch, template, answers, what, advice):
    """Each id is asked for before anything is created, and the advice names its field."""
    Account(monkeypatch, **answers)
    with pytest.raises(PermanentError, match=what) as refused:
        require_ready(batch(public_address=False, **template), SHARED)
    assert advice in refused.value.advice


@pytest.mark.parametrize(
    ("template", "answers", "what"),
    [
        ({}, {"InstanceTypeOfferings": []}, "does not offer the instance type p4d.24xlarge in us-east-1"),
        ({"zone": "us-east-1a"}, {"InstanceTypeOfferings": [{"Location": "us-east-1b"}]}, "in us-east-1a; it is in us-east-1b"),
        (ZONED, reserved(AvailableInstanceCount=0), "has none of its 2 instances free"),
    ],
)  # fmt: skip
def test_another_offer_may_do(monkeypatch, template, answers, what):
    """What is not to be had here now is no fault of the fleet."""
    Account(monkeypatch, **answers)
    with pytest.raises(NoCapacity, match=what):
        require_ready(batch(public_address=False, **template), SHARED)


def test_what_fits_is_no_obstacle(monkeypatch):
    """Neither is what the credentials may not ask."""
    Account(monkeypatch, **reserved())
    require_ready(batch(public_address=False, **ZONED), SHARED)
    forbidden = dict.fromkeys(
        ("describe_availability_zones", "describe_images", "describe_capacity_reservations"),
        "UnauthorizedOperation",
    )
    Account(monkeypatch, **forbidden)
    require_ready(batch(public_address=False, **ZONED), SHARED)


DISK = DiskRequest("data", "data", "us-east-1a", 100, snapshot="snap-1")


@pytest.mark.parametrize(
    ("disk", "answers", "what", "advice"),
    [
        (replace(DISK, zone="us-east-1z"), {}, "no availability zone us-east-1z", "`availability_zone` of volume data"),
        (DISK, {"describe_snapshots": "InvalidSnapshot.NotFound"}, "has no snapshot snap-1", "`aws.snapshot_id` of volume data"),
        (DISK, {"describe_snapshots": {"Snapshots": [{"State": "pending"}]}}, "snap-1 is pending", "wait"),
        (DISK, {"describe_snapshots": {"Snapshots": [{"State": "completed", "VolumeSize": 200}]}}, "of a disk of 200 GB, and volume data has 100 GB", "`size: 200GB`"),
    ],
)  # fmt: skip
def test_a_disk_that_could_not_be_created(monkeypatch, disk, answers, what, advice):
    """Its zone and its snapshot are asked for."""
    Account(monkeypatch, **answers)
    with pytest.raises(PermanentError, match=what) as refused:
        require_disk(batch().account, disk, "data")
    assert advice in refused.value.advice


def test_a_disk_that_can_be_created(monkeypatch):
    """The snapshot is complete, and not larger."""
    there = {"Snapshots": [{"State": "completed", "VolumeSize": 100}]}
    account = Account(monkeypatch, describe_snapshots=there)
    require_disk(batch().account, DISK, "data")
    assert "describe_snapshots" in account.asked


def test_hosts_in_the_place_of_others_need_no_room(monkeypatch):
    """Only those beyond them count for quotas and for a reservation that the others use."""
    Account(monkeypatch, addresses=5, **reserved(AvailableInstanceCount=0))
    require_ready(batch(**ZONED), SHARED, replaced=2)
    with pytest.raises(NoCapacity, match="has none of its 2 instances free"):
        require_ready(batch(**ZONED), SHARED, replaced=1)
    Account(monkeypatch, addresses=5)
    with pytest.raises(QuotaExceeded, match="Elastic IP addresses needed: 1"):
        require_ready(batch(), SHARED, replaced=1)
