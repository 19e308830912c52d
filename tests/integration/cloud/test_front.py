"""The EC2 front: it refuses what EC2 refuses, and has the faults that a test injects."""

from __future__ import annotations

import ipaddress
import threading
import urllib.error
import urllib.request

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from cloud import faults
from cloud.front import wait_until

ZONE = "us-east-1a"


def run_one(client, image, **parameters):
    """Create one instance, and return its description."""
    given = {"ImageId": image, "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1}
    return client.run_instances(**{**given, **parameters})["Instances"][0]


def refused(call, *arguments, **parameters):
    """Return the code with which AWS refuses a call."""
    with pytest.raises(ClientError) as error:
        call(*arguments, **parameters)
    return error.value.response["Error"]["Code"]


def post(cloud, body):
    """Send a request that no client of botocore would send; return its error."""
    scope = "AKIAFLEETFORMTESTS00/20260101/us-east-1/ec2/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=a, Signature=b"
    }
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(urllib.request.Request(cloud.url, body.encode(), headers))
    return error.value.read().decode()


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("Action=RunInstance&Version=2016-11-15", "InvalidAction"),
        ("Action=RunInstances&Version=2016-11-15&ImageId=ami-1", "MissingParameter"),
        ("Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&Zone=a", "UnknownParameter"),
        ("Action=RunInstances&Version=2016-11-15&MinCount=one&MaxCount=1", "InvalidParameterValue"),
        (
            "Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&MetadataOptions.HttpTokens=no",
            "InvalidParameterValue",
        ),
        ("Action=DescribeInstances&Version=2015-01-01", "InvalidParameterValue"),
    ],
)
def test_requests_that_the_service_model_lacks_are_refused(cloud, body, code):
    """A wrong operation, parameter, type, enumeration or version is an error, where moto would go on."""
    assert f"<Code>{code}</Code>" in post(cloud, body)


def test_what_cannot_be_bought_is_refused(cloud, image):
    """Image, type, architecture, zone and key must exist and fit each other."""
    ec2 = cloud.client()
    before = cloud.instances()
    assert refused(run_one, ec2, "ami-00000000000000099") == "InvalidAMIID.NotFound"
    assert refused(run_one, ec2, image, InstanceType="g5g.xlarge") == "InvalidParameterValue"
    assert refused(run_one, ec2, image, InstanceType="p99.large") == "InvalidParameterValue"
    elsewhere = {"AvailabilityZone": "us-east-1e"}
    assert refused(run_one, ec2, image, Placement=elsewhere) == "Unsupported"
    assert refused(run_one, ec2, image, KeyName="none") == "InvalidKeyPair.NotFound"
    group = {"GroupName": "none"}
    assert refused(run_one, ec2, image, Placement=group) == "InvalidPlacementGroup.Unknown"
    assert cloud.instances() == before


def test_one_token_buys_once(cloud, image):
    """A repeated token returns the first instance, and with other parameters it is refused."""
    ec2 = cloud.client()
    first = run_one(ec2, image, ClientToken="once")["InstanceId"]
    assert run_one(ec2, image, ClientToken="once")["InstanceId"] == first
    code = refused(run_one, ec2, image, ClientToken="once", InstanceType="g5.2xlarge")
    assert code == "IdempotentParameterMismatch"


def test_a_quota_is_shown_and_enforced(cloud, image):
    """vCPUs on demand and on spot are counted apart, and the quota says the limit that refuses."""
    cloud.front.catalog.vcpus |= {"L-DB2E81BA": 8, "L-3819A6DF": 4}
    try:
        ec2 = cloud.client(account="222222222222")
        run_one(ec2, image, InstanceType="g5.2xlarge")
        assert refused(run_one, ec2, image) == "VcpuLimitExceeded"
        spot = {"MarketType": "spot"}
        run_one(ec2, image, InstanceMarketOptions=spot)
        code = refused(run_one, ec2, image, InstanceMarketOptions=spot)
        assert code == "MaxSpotInstanceCountExceeded"
        quotas = cloud.client("service-quotas")
        answer = quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-DB2E81BA")
        assert answer["Quota"]["Value"] == 8
    finally:
        cloud.front.catalog.vcpus.clear()


def test_spot_instances_have_requests_and_are_taken_away(cloud, image):
    """A spot instance names its request; one that is reclaimed says so."""
    ec2 = cloud.client()
    one = run_one(ec2, image, InstanceMarketOptions={"MarketType": "spot"})
    request = one["SpotInstanceRequestId"]
    described = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[request])
    assert described["SpotInstanceRequests"][0]["InstanceId"] == one["InstanceId"]
    cloud.reclaim_spot(one["InstanceId"])
    found = ec2.describe_instances(InstanceIds=[one["InstanceId"]])["Reservations"][0]["Instances"][
        0
    ]
    assert found["State"]["Name"] == "terminated"
    assert found["StateReason"]["Code"] == "Server.SpotInstanceTermination"


def test_an_account_without_the_spot_role_is_refused(cloud, image):
    """Without the service-linked role a spot instance is refused, and IAM does not find the role."""
    cloud.front.catalog.spot_role = False
    try:
        before = cloud.instances()
        code = refused(run_one, cloud.client(), image, InstanceMarketOptions={"MarketType": "spot"})
        assert code == "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
        role = cloud.client("iam").get_role
        assert refused(role, RoleName="AWSServiceRoleForEC2Spot") == "NoSuchEntity"
        assert cloud.instances() == before
    finally:
        cloud.front.catalog.spot_role = True


def test_network_cards_are_kept_and_have_no_automatic_address(cloud, image):
    """Types of interfaces and their cards are shown, and an instance with several has no public address."""
    cards = [
        {"DeviceIndex": min(card, 1), "NetworkCardIndex": card, "InterfaceType": "efa"}
        for card in range(32)
    ]
    one = run_one(cloud.client(), image, InstanceType="p5.48xlarge", NetworkInterfaces=cards)
    kept = [
        (row["InterfaceType"], row["Attachment"]["NetworkCardIndex"])
        for row in one["NetworkInterfaces"]
    ]
    assert kept == [("efa", card) for card in range(32)]
    assert "PublicIpAddress" not in one
    public = [{**row, "AssociatePublicIpAddress": True} for row in cards[:2]]
    code = refused(
        run_one, cloud.client(), image, InstanceType="p5.48xlarge", NetworkInterfaces=public
    )
    assert code == "InvalidParameterCombination"
    assert (
        refused(run_one, cloud.client(), image, NetworkInterfaces=cards[:1])
        == "UnsupportedOperation"
    )


def test_interfaces_have_the_tags_and_addresses_of_their_instance(cloud, image):
    """The list of interfaces shows every card with its tags, and no address that moto draws."""
    ec2 = cloud.client()
    cards = [
        {"DeviceIndex": card, "NetworkCardIndex": card, "InterfaceType": "efa"} for card in range(2)
    ]
    tags = [{"Key": "uid", "Value": "of the host"}]
    one = run_one(
        ec2,
        image,
        InstanceType="p5.48xlarge",
        NetworkInterfaces=cards,
        TagSpecifications=[{"ResourceType": "network-interface", "Tags": tags}],
    )
    rule = {"Name": "attachment.instance-id", "Values": [one["InstanceId"]]}
    found = ec2.describe_network_interfaces(Filters=[rule])["NetworkInterfaces"]
    assert [(row["InterfaceType"], row["TagSet"]) for row in found] == [("efa", tags)] * 2
    assert found[0]["PrivateIpAddress"] == one["PrivateIpAddress"]
    assert not any("Association" in row for row in found)


def test_a_launch_template_gives_what_the_call_lacks(cloud, image):
    """The interfaces of a template arrive whole, and the call overrides its type."""
    ec2 = cloud.client()
    interface = {"DeviceIndex": 0, "InterfaceType": "efa"}
    data = {"ImageId": image, "InstanceType": "g5.xlarge", "NetworkInterfaces": [interface]}
    ec2.create_launch_template(LaunchTemplateName="efa", LaunchTemplateData=data)
    one = ec2.run_instances(
        MinCount=1, MaxCount=1, InstanceType="p5.48xlarge", LaunchTemplate={"LaunchTemplateName": "efa"}
    )["Instances"][0]  # fmt: skip
    assert one["InstanceType"] == "p5.48xlarge"
    assert one["NetworkInterfaces"][0]["InterfaceType"] == "efa"


def test_volumes_stay_in_their_zone_and_on_one_instance(cloud, image):
    """A volume of another zone, one that is attached, and a device that is in use are refused."""
    ec2 = cloud.client()
    first = run_one(ec2, image, Placement={"AvailabilityZone": ZONE})["InstanceId"]
    second = run_one(ec2, image, Placement={"AvailabilityZone": "us-east-1b"})["InstanceId"]
    volume = ec2.create_volume(AvailabilityZone=ZONE, Size=10)["VolumeId"]
    other = ec2.create_volume(AvailabilityZone=ZONE, Size=10)["VolumeId"]
    place = {"Device": "/dev/sdf", "VolumeId": volume}
    assert refused(ec2.attach_volume, InstanceId=second, **place) == "InvalidVolume.ZoneMismatch"
    ec2.attach_volume(InstanceId=first, **place)
    assert refused(ec2.attach_volume, InstanceId=first, **place) == "VolumeInUse"
    same = {"Device": "/dev/sdf", "VolumeId": other}
    assert refused(ec2.attach_volume, InstanceId=first, **same) == "InvalidParameterValue"
    ec2.detach_volume(VolumeId=volume, Force=True)
    assert refused(ec2.detach_volume, VolumeId=volume) == "IncorrectState"
    assert (
        refused(ec2.create_volume, AvailabilityZone="us-east-1z", Size=1) == "InvalidZone.NotFound"
    )


def test_a_capacity_reservation_has_so_many_places(cloud, image):
    """Instances use the places of a reservation, and the next one is refused until one ends."""
    ec2 = cloud.client()
    reservation = ec2.create_capacity_reservation(
        InstanceType="g5.xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone=ZONE, InstanceCount=1
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    target = {"CapacityReservationTarget": {"CapacityReservationId": reservation}}
    one = run_one(ec2, image, CapacityReservationSpecification=target)
    code = refused(run_one, ec2, image, CapacityReservationSpecification=target)
    assert code == "ReservationCapacityExceeded"
    ec2.terminate_instances(InstanceIds=[one["InstanceId"]])
    described = ec2.describe_capacity_reservations(CapacityReservationIds=[reservation])
    assert described["CapacityReservations"][0]["AvailableInstanceCount"] == 1


def test_every_address_ends_on_this_machine(cloud, image):
    """Instances and elastic addresses have loopback addresses, and never those that moto draws."""
    ec2 = cloud.client()
    one = run_one(ec2, image)
    elastic = ec2.allocate_address(Domain="vpc")
    ec2.associate_address(AllocationId=elastic["AllocationId"], InstanceId=one["InstanceId"])
    found = ec2.describe_instances(InstanceIds=[one["InstanceId"]])["Reservations"][0]["Instances"][
        0
    ]
    assert found["PublicIpAddress"] == elastic["PublicIp"]
    shown = {one["PrivateIpAddress"], one["PublicIpAddress"], elastic["PublicIp"]}
    shown |= {row["PublicIp"] for row in ec2.describe_addresses()["Addresses"]}
    assert all(ipaddress.ip_address(address).is_loopback for address in shown)


def test_a_list_comes_in_pages(cloud, image):
    """Every instance with the tag is in exactly one page."""
    ec2 = cloud.client(region="us-west-2")
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "page", "Value": "yes"}]}]
    made = {run_one(ec2, image, TagSpecifications=tags)["InstanceId"] for _ in range(7)}
    run_one(ec2, image)
    pages = ec2.get_paginator("describe_instances").paginate(
        Filters=[{"Name": "tag:page", "Values": ["y*"]}], PaginationConfig={"PageSize": 5}
    )
    seen = [row["Instances"][0]["InstanceId"] for page in pages for row in page["Reservations"]]
    assert len(seen) == len(made)
    assert set(seen) == made


def test_no_capacity_is_of_one_type(cloud, image):
    """The fault refuses its type with the status that clients try again, and no other type."""
    cloud.inject(faults.no_capacity("g5.xlarge"))
    ec2 = cloud.client()
    with pytest.raises(ClientError) as error:
        run_one(ec2, image)
    assert error.value.response["Error"]["Code"] == "InsufficientInstanceCapacity"
    assert error.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert run_one(ec2, image, InstanceType="g5.2xlarge")["State"]["Name"] == "pending"


def test_a_slow_instance_is_pending(cloud, image):
    """A new instance is `pending` until its time is over."""
    cloud.inject(faults.slow_create(0.5))
    ec2 = cloud.client()
    one = run_one(ec2, image)["InstanceId"]

    def state():
        return ec2.describe_instances(InstanceIds=[one])["Reservations"][0]["Instances"][0]["State"]

    assert state()["Name"] == "pending"
    wait_until(lambda: state()["Name"] == "running")


def test_a_lost_reply_is_a_call_that_was_made(cloud, image):
    """The caller hears nothing, and the instance exists."""
    cloud.inject(faults.lost_reply("RunInstances"))
    before = {row.id for row in cloud.instances()}
    with pytest.raises(ConnectionClosedError):
        run_one(cloud.client(), image)
    assert len({row.id for row in cloud.instances()} - before) == 1


def test_a_late_list_shows_neither_a_new_instance_nor_its_end(cloud, image):
    """Lists and questions by id are behind; the front's own list is not."""
    ec2 = cloud.client()
    old = run_one(ec2, image)["InstanceId"]
    cloud.lag(3600)
    cloud.front.region("123456789012", "us-east-1").instances[old].created -= 3600
    new = run_one(ec2, image)["InstanceId"]
    ec2.terminate_instances(InstanceIds=[old])
    shown = {
        one["InstanceId"]: one["State"]["Name"]
        for page in ec2.get_paginator("describe_instances").paginate()
        for row in page["Reservations"]
        for one in row["Instances"]
    }
    assert new not in shown
    assert shown[old] == "running"
    assert refused(ec2.describe_instances, InstanceIds=[new]) == "InvalidInstanceID.NotFound"
    assert new in {row.id for row in cloud.instances()}
    assert old not in {row.id for row in cloud.instances()}


def test_a_held_call_waits_until_it_is_released(cloud, image):
    """Time to kill the caller: nothing is made before the release."""
    fault = cloud.inject(faults.held("RunInstances"))
    before = len(cloud.instances())
    caller = threading.Thread(target=run_one, args=(cloud.client(), image))
    caller.start()
    assert fault.arrived.wait(30)
    assert len(cloud.instances()) == before
    cloud.remove(fault)
    caller.join(30)
    assert len(cloud.instances()) == before + 1


def test_credentials_that_are_wrong_or_expired(cloud):
    """EC2 and STS refuse a key that they do not know, and one that has expired."""
    ec2, sts = cloud.client(account="333333333333"), cloud.client("sts", account="333333333333")
    assert sts.get_caller_identity()["Account"] == "333333333333"
    key = cloud.access_key("333333333333")
    cloud.expire(key)
    assert refused(ec2.describe_instances) == "RequestExpired"
    assert refused(sts.get_caller_identity) == "ExpiredToken"
    del cloud.front.keys[key]
    assert refused(ec2.describe_instances) == "AuthFailure"
    assert refused(sts.get_caller_identity) == "InvalidClientTokenId"


def test_accounts_and_regions_are_apart(cloud, image):
    """An instance is in the list of its account and region only."""
    one = run_one(cloud.client(account="444444444444", region="eu-west-1"), image)["InstanceId"]
    for account, region in (("444444444444", "us-east-1"), ("123456789012", "eu-west-1")):
        other = cloud.client(account=account, region=region)
        assert refused(other.describe_instances, InstanceIds=[one]) == "InvalidInstanceID.NotFound"


def test_a_region_that_does_not_exist_does_not_answer(cloud):
    """As a name that has no address: the caller hears nothing."""
    with pytest.raises(ConnectionClosedError):
        cloud.client(region="moon-1").describe_instances()
