"""The scenarios of `make test-aws`, against the cloud of the tests: their own limits and their sweep are tried as well."""

from __future__ import annotations

import dataclasses

import pytest

from cloud.aws_cloud import REGION
from cloud.catalog import ACCOUNT
from integration.aws_account import scenarios
from integration.aws_account.account import Account, swept

pytestmark = pytest.mark.waits


@pytest.fixture
def account(pulumi, cloud, tmp_path):
    return Account(
        id=ACCOUNT, region=REGION, ssh_from="203.0.113.7/32", instance_type="g5.xlarge",
        dollars_max=3.0, variables=cloud.environment(), folder=tmp_path,
    )  # fmt: skip


def test_create_shrink_and_destroy(account):
    """The scenario passes, and its sweep has nothing to do."""
    with swept(account):
        scenarios.create_shrink_and_destroy(account)


def test_the_sweep_deletes_what_is_left(account, cloud):
    """A test that fails leaves nothing, even if fleetform has lost its state; others' instances stay."""
    image = cloud.client().describe_images()["Images"][0]["ImageId"]
    cloud.client().run_instances(ImageId=image, InstanceType="t3.micro", MinCount=1, MaxCount=1)
    (other,) = cloud.instances()
    account.declare(1)
    account.run("apply", "-y")
    assert len(account.existing()) > len(account.instances()) == 1
    account.run("controller", "stop")
    account.sweep()
    assert account.existing() == []
    assert cloud.instances() == [other]


def test_a_dear_type_is_refused(account, cloud):
    """Before anything is created."""
    calls = len(cloud.calls())
    dear = dataclasses.replace(account, dollars_max=2.0, folder=account.folder / "dear")
    with pytest.raises(AssertionError, match=r"it could cost \$2.01"), swept(dear):
        pass
    assert len(cloud.calls()) == calls
