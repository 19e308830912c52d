"""What `fleetform offer --refresh` learns from the account."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cloud import faults

pytestmark = pytest.mark.waits

ROW = ("offer", "--region", "eu-west-1", "--type", "g5.xlarge", "--spot", "auto")


@pytest.fixture
def typed(cloud, tmp_path):
    """Return a function that runs a command in an empty folder, with the cloud of the tests."""
    home = {"FLEETFORM_STATE_HOME": str(tmp_path / "state")}

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "fleetform.cli.entry", *words], cwd=tmp_path, text=True,
            env={**cloud.environment(), **home}, capture_output=True, check=False,
        )  # fmt: skip

    return run


def test_a_region_has_the_types_and_prices_of_the_account(typed, cloud):
    """Without the question its prices are unknown, afterwards its offers have prices on demand and on spot."""
    assert "unknown" in typed(*ROW).stdout
    cloud.front.catalog.prices["eu-west-1"] = {"g5.xlarge": "1.1230000000"}
    cloud.front.catalog.spot_prices["g5.xlarge"] = "0.4"
    asked = typed(*ROW, "--refresh")
    assert asked.returncode == 0, asked.stderr
    assert "(aws in eu-west-1), an hour" in asked.stdout
    before = len(cloud.calls())
    offers = json.loads(typed(*ROW, "--json").stdout)
    assert len(cloud.calls()) == before
    assert [(one["spot"], one["price_micros"]) for one in offers] == [
        (True, 400_000),
        (False, 1_123_000),
    ]
    # The other regions are as they were.
    assert typed("offer", "--region", "us-east-1", "--type", "g5.xlarge").returncode == 0


def test_only_prices_of_the_instances_asked_for_are_missed(typed, cloud):
    """Who asks for instances on demand hears nothing of spot prices that are missing."""
    cloud.front.catalog.prices["eu-west-1"] = {"g5.xlarge": "1.1230000000"}
    message = "User is not authorized to perform: ec2:DescribeSpotPriceHistory"
    code = "UnauthorizedOperation"
    cloud.inject(faults.refused("DescribeSpotPriceHistory", code, message, times=2))
    on_demand = typed(*ROW[:-2], "--refresh")
    assert on_demand.returncode == 0, on_demand.stderr
    assert "spot" not in on_demand.stderr
    either = typed(*ROW, "--refresh")
    assert "aws told no prices of spot in eu-west-1" in either.stderr


def test_without_credentials_nothing_is_written(typed, cloud):
    """The refusal of AWS is said, and the prices stay unknown."""
    cloud.expire()
    try:
        refused = typed(*ROW, "--refresh")
    finally:
        cloud.expire(expired=False)
    assert refused.returncode == 1
    assert "credentials" in refused.stderr
    assert "unknown" in typed(*ROW).stdout


def test_a_region_without_prices_says_why(typed, cloud):
    """A missing permission is named where AWS refuses, and nothing is blamed where it answers without prices; known prices stay."""
    cloud.front.catalog.spot_prices["g5.xlarge"] = "0.4"
    message = "User is not authorized to perform: pricing:GetProducts"
    cloud.inject(faults.refused("GetProducts", "AccessDeniedException", message))
    refused = typed(*ROW, "--refresh")
    assert refused.returncode == 0, refused.stderr
    assert (
        "aws told no prices on demand in eu-west-1: eu-west-1: the account may not do"
        in refused.stderr
    )
    assert "pricing:GetProducts" in refused.stderr
    assert "asks AWS for the unknown ones" not in refused.stdout
    home = ("offer", "--region", "us-east-1", "--type", "g5.xlarge")
    before = typed(*home).stdout
    answered = typed(*home, "--refresh")
    assert answered.returncode == 1
    assert "told no prices on demand in us-east-1, though it answered" in answered.stderr
    assert "all that is known of us-east-1 stays" in answered.stderr
    assert "permission" not in answered.stderr
    assert typed(*home).stdout == before
