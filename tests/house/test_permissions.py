"""The policy in the guide of AWS has each call that fleetform makes itself; those of the plugin of Pulumi are not known here."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/how-to/aws.md"
SOURCES = ROOT / "providers/fleetform/providers/pulumi/aws"

PREFIXES = {
    "ec2": "ec2",
    "efs": "elasticfilesystem",
    "fsx": "fsx",
    "iam": "iam",
    "pricing": "pricing",
    "service-quotas": "servicequotas",
    "ssm": "ssm",
}
"""How policies name a service of botocore; `sts:GetCallerIdentity` needs no permission."""


def permitted():
    (policy,) = re.findall(r"```json\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    return [one for row in json.loads(policy)["Statement"] for one in row["Action"]]


@cache
def operations(service):
    """Return the operations of a service by their names in Python."""
    model = botocore.session.get_session().get_service_model(service)
    return {xform_name(one): one for one in model.operation_names}


def called():
    """Return, by service, the operations that the source names as a method or in quotes."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(SOURCES.glob("*.py")))
    words = set(re.findall(r"\.([a-z_]+)\(", text)) | set(re.findall(r'"([a-z_]+)"', text))
    services = set(re.findall(r'"([a-z0-9-]+)"', text)) & PREFIXES.keys()
    # FSx has snapshots and volumes too, by the names of EC2.
    ambiguous = operations("ec2").keys()
    return {
        f"{PREFIXES[service]}:{operations(service)[word]}"
        for service in services
        for word in words & operations(service).keys()
        if service == "ec2" or word not in ambiguous
    }


def test_calls_are_found():
    """Those that read the account before a batch are among them."""
    assert {"ec2:DescribeImages", "ec2:RunInstances", "iam:GetRole", "ssm:GetParameter"} <= called()


@pytest.mark.parametrize("call", sorted(called()))
def test_a_call_is_permitted(call):
    """By an action of the policy, which may end with `*`."""
    assert any(fnmatchcase(call, action) for action in permitted()), call
