"""Services that a test needs and a machine may not have."""

from __future__ import annotations

import os

import pytest

_REQUIRED = frozenset(os.environ.get("FLEETFORM_TEST_REQUIRE", "").replace(",", " ").split())


def need(service: str, found: bool, reason: str) -> None:
    """
    Skip the test with the reason when a service is missing.

    A service that FLEETFORM_TEST_REQUIRE names (or `all`) fails the test instead, so that CI cannot
    go green by skipping.
    """
    if found:
        return
    if _REQUIRED & {"all", service}:
        pytest.fail(f"{service} is required here: {reason}")
    pytest.skip(f"{service}: {reason}")
