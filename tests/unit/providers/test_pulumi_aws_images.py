"""The image of a host: by its type or as declared, and the same one until another is asked for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.providers.contract.errors import PermanentError
from fleetform.providers.offers.aws_images import image_parameter
from fleetform.providers.pulumi.aws import images
from fleetform.providers.pulumi.aws.images import Images, declared_image
from fleetform.providers.pulumi.aws.program import AwsAccount
from fleetform.providers.pulumi.engine.file_records import FileRecords
from unit.providers.test_pulumi_aws_place import PLACE, REQUEST

ACCOUNT = AwsAccount("us-east-1", "123456789012", "e1")


def request(**place):
    endpoint = {**{name: PLACE[name] for name in PLACE if name != "image"}, **place}
    return replace(REQUEST, endpoint=endpoint)


@pytest.mark.parametrize(
    ("instance_type", "words"),
    [
        ("g5.xlarge", "x86_64/base-oss-nvidia-driver"),
        ("g5g.xlarge", "arm64/base-oss-nvidia-driver"),
        ("c6i.large", "ubuntu/server/24.04/stable/current/amd64"),
        ("c7g.large", "ubuntu/server/24.04/stable/current/arm64"),
    ],
)
def test_types_have_images(instance_type, words):
    """Types with GPUs get the image with a driver, all others Ubuntu, of their architecture."""
    assert words in image_parameter(instance_type)
    assert declared_image(request(instance_type=instance_type)) == image_parameter(instance_type)


@pytest.mark.parametrize("instance_type", ["p3dn.24xlarge", "g99.xlarge"])
def test_without_a_driver_the_image_must_be_declared(instance_type):
    """A GPU that the image does not support, and a type that no catalogue has."""
    with pytest.raises(PermanentError, match=instance_type) as caught:
        declared_image(request(instance_type=instance_type))
    assert "aws.image" in caught.value.advice
    assert declared_image(request(instance_type=instance_type, image="ami-2")) == "ami-2"


def test_a_fleet_keeps_its_image(tmp_path, monkeypatch):
    """A newer image is not taken until `image_renewal` changes; each fleet, region and parameter has its own."""
    now = ["ami-1"]
    monkeypatch.setattr(images, "latest_image", lambda _account, _parameter: now[0])
    kept = Images(FileRecords(tmp_path))
    assert kept.resolve(request(), ACCOUNT) == "ami-1"
    assert kept.pinned(request()) == ""
    assert kept.pin(request(), ACCOUNT) == "ami-1"
    now[0] = "ami-2"
    assert Images(FileRecords(tmp_path)).pin(request(), ACCOUNT) == "ami-1"
    assert Images(FileRecords(tmp_path)).resolve(request(), ACCOUNT) == "ami-1"
    others = [
        replace(request(), fleet="others"),
        request(region="eu-west-1"),
        request(image="/own/image"),
        request(image_renewal=1),
    ]
    assert [kept.pin(one, ACCOUNT) for one in others] == ["ami-2"] * 4
    assert kept.pin(request(image="ami-9"), ACCOUNT) == "ami-9"


def test_the_newest_image_is_that_of_the_parameter(tmp_path, monkeypatch):
    """Whatever is pinned; an image that is named by its id has none."""
    monkeypatch.setattr(images, "latest_image", lambda _account, _parameter: "ami-2")
    kept = Images(FileRecords(tmp_path))
    assert kept.newest(request(image="/own/image"), ACCOUNT) == "ami-2"
    assert kept.newest(request(image="ami-1"), ACCOUNT) == ""


def test_the_image_goes_with_the_fleet(tmp_path, monkeypatch):
    """A fleet that is removed and declared again takes the newest image; others keep theirs."""
    now = ["ami-1"]
    monkeypatch.setattr(images, "latest_image", lambda _account, _parameter: now[0])
    kept, other = Images(FileRecords(tmp_path)), replace(request(), fleet="gpus-2")
    assert [kept.pin(one, ACCOUNT) for one in (request(), other)] == ["ami-1"] * 2
    now[0] = "ami-2"
    kept.forget("gpus")
    assert [kept.pin(one, ACCOUNT) for one in (request(), other)] == ["ami-2", "ami-1"]
