"""
The scenarios against a real account: `make test-aws`.

    FLEETFORM_TEST_AWS_ACCOUNT=123456789012 FLEETFORM_TEST_AWS_SSH_FROM=203.0.113.7/32 AWS_PROFILE=tests make test-aws
"""

from __future__ import annotations

import os

import pytest

from integration.aws_account import scenarios
from integration.aws_account.account import Account, swept


@pytest.fixture
def account(tmp_path):
    """The account of the variables, without anything of these tests afterwards."""
    if not os.environ.get("FLEETFORM_TEST_AWS_ACCOUNT"):
        pytest.skip("FLEETFORM_TEST_AWS_ACCOUNT names no account")
    given = Account(
        id=os.environ["FLEETFORM_TEST_AWS_ACCOUNT"],
        region=os.environ.get("FLEETFORM_TEST_AWS_REGION", "us-east-1"),
        ssh_from=os.environ["FLEETFORM_TEST_AWS_SSH_FROM"],
        instance_type=os.environ.get("FLEETFORM_TEST_AWS_TYPE", "t3.small"),
        dollars_max=float(os.environ.get("FLEETFORM_TEST_AWS_DOLLARS", "0.50")),
        variables=dict(os.environ),
        folder=tmp_path,
    )
    with swept(given) as cleaned:
        yield cleaned


def test_create_shrink_and_destroy(account):
    """Nothing exists before apply; a second plan is empty; a smaller fleet has fewer instances."""
    scenarios.create_shrink_and_destroy(account)


def test_kill_during_a_create(account):
    """After `kill -9` of the controller the next apply buys nothing twice."""
    scenarios.kill_during_a_create(account)


def test_run_a_job(account):
    """The instance boots, becomes a host over SSH and runs a job; its cost is known."""
    scenarios.run_a_job(account)
