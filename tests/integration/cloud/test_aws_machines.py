"""What a fleet declares of its instances on AWS, from the document to the cloud of the tests."""

from __future__ import annotations

import pytest

from cloud.catalog import NVIDIA, UBUNTU
from integration.cloud.test_aws_fleet import Site

pytestmark = pytest.mark.waits

FLEET = """
type: fleet
name: gpus
regions: [us-east-1]
instance_types: [{instance_type}]
nodes: {nodes}
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
    assert site.plan()["resource_changes"] == []
    site.fleet(nodes=2)
    site.apply()
    assert site.images() == {"gpus-0": first, "gpus-1": first}

    site.fleet("image_renewal: 1", nodes=2)
    site.apply()
    assert site.images() == {"gpus-0": newer, "gpus-1": newer}


def test_an_image_by_its_parameter(site, cloud):
    """A type without GPUs gets Ubuntu, and a parameter of the account may have another image."""
    catalog = cloud.front.catalog
    site.fleet(instance_type="m6i.xlarge")
    site.apply()
    assert site.images() == {"gpus-0": catalog.parameters[UBUNTU]}
    own = catalog.publish_image("own", "/vision/image")
    site.fleet("image: /vision/image", instance_type="m6i.xlarge")
    site.apply()
    assert site.images() == {"gpus-0": own}
    site.fleet("image: /vision/other", instance_type="m6i.xlarge")
    assert "/vision/other" in site.apply(code=1)
