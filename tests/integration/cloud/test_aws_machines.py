"""What a fleet declares of its instances on AWS, from the document to the cloud of the tests."""

from __future__ import annotations

import json

import pytest

from cloud import faults
from cloud.catalog import ADDRESS_QUOTA, NVIDIA, UBUNTU
from cloud.front import wait_until
from integration.cloud.aws_site import Site, killed_during

pytestmark = pytest.mark.waits

FLEET = """
type: fleet
name: gpus
regions: [us-east-1]
instance_types: [{instance_type}]
nodes: {nodes}
run_as: owner
{more}
aws:
  account: "123456789012"
  ssh_from: [203.0.113.7/32]
"""


class Machines(Site):
    """An environment with one fleet that declares no image."""

    def __init__(self, folder, cloud):
        super().__init__(folder, cloud, "")

    def fleet(self, *aws, nodes=1, instance_type="g5.xlarge", more=""):
        text = FLEET.format(nodes=nodes, instance_type=instance_type, more=more)
        lines = "".join(f"  {line}\n" for line in aws)
        (self.root / "fleet.yaml").write_text(text + lines)

    def apply(self, code=0):
        return self.run("apply", "-y", "--allow-destroy", code=code)

    def described(self):
        """Return what EC2 says of the instances that run, by their names."""
        rows = self.cloud.client().describe_instances()["Reservations"]
        found = [one for row in rows for one in row["Instances"]]
        return {
            tag["Value"]: one
            for one in found
            if one["State"]["Name"] == "running"
            for tag in one["Tags"]
            if tag["Key"] == "Name"
        }

    def images(self):
        return {name: one["ImageId"] for name, one in self.described().items()}


@pytest.fixture
def site(pulumi, cloud, tmp_path):
    """An environment that is left without an instance."""
    made = Machines(tmp_path, cloud)
    yield made
    made.run("destroy", "-y", "--allow-destroy")
    assert cloud.instances() == []


def test_the_image_is_that_of_the_type_and_stays(site, cloud):
    """A newer image changes nothing, for later hosts too, until `image_renewal` asks for it."""
    catalog = cloud.front.catalog
    first = catalog.parameters[NVIDIA]
    site.fleet()
    assert NVIDIA in site.run("plan")
    assert "create 1 aws:ec2/instance:Instance" in site.run("plan", "--preview")
    site.apply()
    assert site.images() == {"gpus-0": first}

    newer = catalog.publish_image("Deep Learning Base OSS Nvidia Driver GPU AMI, newer", NVIDIA)
    asked = len(cloud.calls("GetParameter"))
    assert site.plan()["resource_changes"] == []
    assert "newer image" not in site.run("fleet", "show", "gpus")
    assert len(cloud.calls("GetParameter")) == asked
    shown = site.run("drift", "--detailed-exitcode", code=2)
    assert f"image: {first} (expected) → {newer} (seen)" in shown
    assert "another number for `image_renewal`" in shown
    assert f"newer image: {newer}" in site.run("fleet", "show", "gpus")
    assert site.plan()["resource_changes"] == []
    site.fleet(nodes=2)
    site.apply()
    assert site.images() == {"gpus-0": first, "gpus-1": first}

    site.fleet("image_renewal: 1", nodes=2)
    # Nothing boots behind the instances, so the rollout waits at the first, and apply with it.
    with site.start("apply", "-y", "--allow-destroy") as rollout:
        wait_until(lambda: newer in site.images().values())
        rollout.kill()


def test_an_image_by_its_parameter(site, cloud):
    """A type without GPUs gets Ubuntu; a parameter of the account may have another image, and must exist."""
    catalog = cloud.front.catalog
    site.fleet(instance_type="m6i.xlarge")
    assert UBUNTU in site.run("plan")
    site.fleet("image: /vision/other", instance_type="m6i.xlarge")
    assert "/vision/other" in site.apply(code=1)
    own = catalog.publish_image("own", "/vision/image")
    site.fleet("image: /vision/image", instance_type="m6i.xlarge")
    site.apply()
    assert site.images() == {"gpus-0": own}


def test_what_a_fleet_declares_is_what_ec2_has(site, cloud):
    """A reservation, the root disk, tags, and no public address."""
    reserved = cloud.client().create_capacity_reservation(
        InstanceType="g5.xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1b",
        InstanceCount=1,
    )["CapacityReservation"]["CapacityReservationId"]  # fmt: skip
    site.fleet(
        "public_ips: false",
        "root_disk: {iops: 6000, throughput: 500}",
        more=f"reservation: {reserved}\navailability_zones: [us-east-1b]\ntags: {{team: vision}}\n"
        "resources: {disk: 150GB.., gpu: 1}",
    )
    site.apply()
    (found,) = site.described().values()
    assert found["CapacityReservationId"] == reserved
    assert found["Placement"]["AvailabilityZone"] == "us-east-1b"
    assert {"Key": "team", "Value": "vision"} in found["Tags"]
    assert not found.get("PublicIpAddress")
    # moto shows neither the operations nor the throughput of a root disk.
    (asked,) = cloud.calls("RunInstances")[-1].call.parameters["BlockDeviceMappings"]
    disk = [asked["Ebs"][name] for name in ("VolumeType", "VolumeSize", "Iops", "Throughput")]
    assert disk == ["gp3", 150, 6000, 500]


def test_a_cluster_has_every_interface(site, cloud):
    """A type with several network cards gets one of EFA for each, and no public address if it shall have none."""
    site.fleet("public_ips: false", instance_type="p4d.24xlarge", more=CLUSTER)
    site.apply()
    (found,) = site.described().values()
    assert [one["InterfaceType"] for one in found["NetworkInterfaces"]] == ["efa"] * 4
    assert found["Placement"]["GroupName"].startswith("fleetform-gpus-")
    assert "PublicIpAddress" not in found
    assert addresses(cloud) == []
    assert site.plan()["resource_changes"] == []


CLUSTER = "placement: cluster\navailability_zones: [us-east-1a]"


def addresses(cloud):
    return cloud.client().describe_addresses()["Addresses"]


def test_a_host_with_several_interfaces_has_an_elastic_ip(site, cloud):
    """It is reached there, one that is terminated by hand leaves its address to the next change, and the last host leaves none."""
    site.fleet(nodes=2, instance_type="p4d.24xlarge", more=CLUSTER)
    assert "create 2 aws:ec2/eip:Eip" in site.run("plan", "--preview")
    site.apply()
    assert site.plan()["resource_changes"] == []
    shown = {one["PublicIp"]: one["InstanceId"] for one in addresses(cloud)}
    found = site.described()
    assert shown == {one["PublicIpAddress"]: one["InstanceId"] for one in found.values()}
    hosts = json.loads(site.run("fleet", "show", "gpus", "--format", "json"))["instances"]
    assert {one["address"] for one in hosts} == shown.keys()

    cloud.client().terminate_instances(InstanceIds=[found["gpus-1"]["InstanceId"]])
    assert len(addresses(cloud)) == 2
    site.fleet(nodes=1, instance_type="p4d.24xlarge", more=CLUSTER)
    site.apply()
    site.fleet(nodes="0..0", instance_type="p4d.24xlarge", more=CLUSTER)
    site.apply()
    assert cloud.instances() == []
    assert addresses(cloud) == []


def test_addresses_are_a_quota(site, cloud):
    """It is named before anything is created."""
    catalog = cloud.front.catalog
    site.fleet(instance_type="p4d.24xlarge", more=CLUSTER)
    catalog.vcpus[ADDRESS_QUOTA] = 0
    said = "Elastic IP addresses needed: 1"
    assert said in site.run("plan", "--preview", code=1)
    assert said in site.apply(code=1)
    assert cloud.instances() == []
    del catalog.vcpus[ADDRESS_QUOTA]


def test_a_host_that_could_not_have_its_address_is_released(site, cloud):
    """The refusal is shown, and nothing is left."""
    before = len(cloud.calls("AllocateAddress"))
    site.fleet(instance_type="p4d.24xlarge", more=CLUSTER)
    cloud.inject(
        faults.refused(
            "AllocateAddress",
            "AddressLimitExceeded",
            "The maximum number of addresses has been reached.",
            status=400,
        )
    )
    assert "AddressLimitExceeded" in site.apply(code=1)
    assert len(cloud.calls("AllocateAddress")) > before
    assert cloud.instances() == []
    assert addresses(cloud) == []


def test_a_create_of_an_address_is_cut_off(site, cloud):
    """The next apply finds the address that was asked for, and there is one."""
    site.fleet(instance_type="p4d.24xlarge", more=CLUSTER)
    killed_during(site, cloud, "AllocateAddress")
    site.apply()
    (shown,) = addresses(cloud)
    assert shown["PublicIp"] == site.described()["gpus-0"]["PublicIpAddress"]


def test_what_the_account_lacks_is_said_first(site, cloud):
    """A quota, the role of spot and the right to pass a role: the plan names each, and nothing is created."""
    catalog, said = cloud.front.catalog, "2 g5.xlarge need 8 vCPUs"
    before = len(cloud.calls("CreateSecurityGroup"))
    catalog.vcpus["L-DB2E81BA"] = 4
    site.fleet(nodes=2)
    assert said in site.run("plan", "--preview", code=1)
    assert said in site.apply(code=1)
    del catalog.vcpus["L-DB2E81BA"]

    catalog.spot_role = False
    site.fleet(more="spot_policy: spot")
    assert "create-service-linked-role" in site.run("plan", "--preview", code=1)
    catalog.spot_role = True

    cloud.inject(
        faults.refused(
            "RunInstances",
            "UnauthorizedOperation",
            "User is not authorized to perform: iam:PassRole on resource: training",
            status=403,
        )
    )
    site.fleet("iam_instance_profile: training")
    assert "instance profile training" in site.run("plan", "--preview", code=1)
    assert cloud.instances() == []
    assert len(cloud.calls("CreateSecurityGroup")) == before
