"""Addresses of the cloud of the tests: those that a test sets, and no other machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cloud.aws_cloud import TESTS, AwsCloud


def test_a_test_sets_the_address_of_an_instance(tmp_path):
    """The address follows from the tags: that of the namespace that plays the host."""
    addresses = {"one": "10.77.0.1", "two": "10.77.0.2"}
    with AwsCloud(tmp_path, address=lambda tags: addresses[tags["uid"]]) as cloud:
        ec2 = cloud.client()
        image = next(iter(cloud.front.catalog.images))
        for name in addresses:
            tags = [{"ResourceType": "instance", "Tags": [{"Key": "uid", "Value": name}]}]
            given = {"ImageId": image, "InstanceType": "g5.xlarge", "MinCount": 1, "MaxCount": 1}
            ec2.run_instances(TagSpecifications=tags, **given)
        shown = {row.tags["uid"]: (row.private_ip, row.public_ip) for row in cloud.instances()}
        assert shown == {name: (address, address) for name, address in addresses.items()}
        tags = [{"ResourceType": "elastic-ip", "Tags": [{"Key": "uid", "Value": "two"}]}]
        assert ec2.allocate_address(TagSpecifications=tags)["PublicIp"] == "10.77.0.2"


def test_a_program_that_dials_another_machine_fails_the_test(tmp_path):
    """The proxy refuses, and the end of the cloud names the address."""
    program = "import urllib.request; urllib.request.urlopen('http://203.0.113.1/plugins')"
    with pytest.raises(AssertionError, match=r"203\.0\.113\.1/plugins"):
        run_in_cloud(tmp_path, program)


def run_in_cloud(folder, program):
    """Run a program in a cloud of its own; it fails to reach what is outside."""
    with AwsCloud(folder) as cloud:
        command = [sys.executable, "-c", program]
        finished = subprocess.run(
            command, env=cloud.environment(), capture_output=True, check=False
        )
        assert b"403" in finished.stderr


def test_the_plugin_looks_up_no_name(tmp_path):
    """An endpoint on another machine fails before any packet, in the plugin's own words."""
    program = (
        "import socket; from cloud.plugin.client import forbid_other_machines; forbid_other_machines();"
        "socket.create_connection(('ec2.us-east-1.amazonaws.com', 443))"
    )
    with AwsCloud(tmp_path) as cloud:
        environment = {**cloud.environment(), "PYTHONPATH": str(TESTS)}
        finished = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
        )  # fmt: skip
    assert "dials loopback only, not ec2.us-east-1.amazonaws.com" in finished.stderr
