"""Names of what a plan renames, as the checker reads them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import check
from fleetform.checker.context import host_called
from fleetform.model.plan import Permissions
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, tree, volume


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


def test_what_was_never_made_in_whole_is_not_by_another_name() -> None:
    """A volume whose step failed is made on a fleet that is renamed meanwhile."""
    failed = replace(row(volume("v", on="f")), digest="", execution_digest="", own_digest="")
    live = ledger(row(fleet("f")), failed)
    moved = ((ResourceKey("fleet", "f"), ResourceKey("fleet", "g")),)
    desired = replace(tree(fleet("g"), volume("v", on="g")), moved=moved)
    plan = planned(desired, live)
    assert "volume.update:volume/v" in {step.key for step in plan.steps}
    assert check(plan, desired, live, Permissions()) == ()
