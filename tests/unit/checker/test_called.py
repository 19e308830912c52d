"""Names of what a plan renames, as the checker reads them."""

from __future__ import annotations

import pytest

from fleetform.checker.called import host_called


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("gpu-0", "big-0"),
        ("gpu-12", "big-12"),
        ("gpu-spare", "gpu-spare"),
        ("gpu", "gpu"),
        ("gpu2-0", "gpu2-0"),
        ("other-0", "other-0"),
    ],
)
def test_a_host_is_renamed_with_its_fleet(host: str, called: str) -> None:
    """Where it is called by that and its number; a name of its own it keeps."""
    assert host_called(host, "gpu", "big") == called
