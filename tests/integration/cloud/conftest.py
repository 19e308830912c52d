"""Fixtures of tests that start the real Pulumi CLI against the cloud of the tests."""

from __future__ import annotations

import pytest

from cloud import pulumi_program


@pytest.fixture(scope="session")
def pulumi(need):
    """The path of the Pulumi CLI that `tests/services.sh` builds."""
    reason = pulumi_program.reason_missing()
    need("pulumi", not reason, reason)
    return pulumi_program.pulumi_program()
