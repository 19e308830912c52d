"""A program is a value: its JSON, its digest, and what it refuses to be."""

from __future__ import annotations

import json

import pytest

from fleetform.providers.pulumi.engine.program import Program, Resource, output_of, secret

PROVIDER = Resource("pulumi:providers:aws", "aws", {"region": "eu-west-1"})
GROUP = Resource("aws:ec2/securityGroup:SecurityGroup", "group", provider="aws")
INSTANCE = Resource(
    "aws:ec2/instance:Instance",
    "i-1",
    {"groups": [output_of("group")], "userData": secret("x"), "tags": {"fleetform:uid": "i-1"}},
    provider="aws",
    depends_on=("group",),
    protect=True,
)
PROGRAM = Program((PROVIDER, GROUP, INSTANCE), {"aws": "7.51.0"})


def test_a_program_survives_json():
    """The runner gets the value that the caller has."""
    read = Program.from_json(json.loads(json.dumps(PROGRAM.to_json())))
    assert read == PROGRAM
    assert read.digest == PROGRAM.digest


@pytest.mark.parametrize(
    "other",
    [
        Program((PROVIDER, GROUP), {"aws": "7.51.0"}),
        Program((PROVIDER, GROUP, INSTANCE), {"aws": "7.52.0"}),
        Program((PROVIDER, Resource(GROUP.type, "group", {"x": 1}, provider="aws"), INSTANCE)),
    ],
)
def test_another_program_has_another_digest(other):
    """Its resources, their properties and the versions of plugins decide on a preview."""
    assert other.digest != PROGRAM.digest


@pytest.mark.parametrize(
    "resources",
    [
        (INSTANCE, PROVIDER, GROUP),
        (PROVIDER, GROUP, GROUP),
        (PROVIDER, Resource("t", "b", {"x": {"y": [output_of("gone", "z")]}})),
    ],
)
def test_a_program_refers_to_what_is_above(resources):
    """And each name is there once."""
    with pytest.raises(AssertionError):
        Program(resources)
