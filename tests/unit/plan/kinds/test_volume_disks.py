"""What a changed network volume leads to, and which runs can have its disk."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, HeldBy
from fleetform.model.volume import DISK
from fleetform.spec.desired import Declared
from unit.plan.trees import declare, ledger, planned, row, task, tree

GB = 1 << 30
ACCOUNT = "123456789012"
PLACE = {
    "account": ACCOUNT, "region": "us-east-1", "zone": "us-east-1a", "encrypted": True, "snapshot": "",
    "file_system": "",
}  # fmt: skip


def disk(**document: Any) -> Declared:
    said = {
        "type": "volume", "backend": "aws", "region": "us-east-1", "availability_zone": "us-east-1a",
        "size": 10 * GB, "aws": {"account": ACCOUNT}, **document,
    }  # fmt: skip
    return declare("volume", "data", {key: value for key, value in said.items() if value})


def there(declared: Declared) -> LiveResource:
    seen = {"id": "vol-1", "zone": "us-east-1a", "size_gb": 10}
    return replace(row(declared), outputs=json.dumps({DISK: seen}))


def gpus(**document: Any) -> Declared:
    aws = {"account": ACCOUNT, "ssh_from": ["203.0.113.7/32"], "image": "ami-1"}
    said = {"type": "fleet", "nodes": 0, "regions": ["us-east-1"], "aws": aws, **document}
    return declare("fleet", "gpus", said)


def test_a_new_disk() -> None:
    """The step says all that the cloud is asked for."""
    (change,) = planned(tree(disk()), ledger()).changes
    (step,) = change.steps
    assert step.verb == "volume.make"
    asked = {"provider": "aws", "registered": "", "id": "", "place": {**PLACE, "size_gb": 10}}
    assert step.arguments[DISK] == asked


def test_a_disk_that_was_kept_for_a_volume_of_the_name_is_offered() -> None:
    """The volume has none of its data, unless it names that disk or begins with a snapshot."""
    live = replace(ledger(), retained_disks={"data": "vol-0f1e2d3c"})
    (said,) = planned(tree(disk()), live).warnings
    assert said == (
        "Volume data gets a new, empty disk: vol-0f1e2d3c, the disk of an earlier volume of this name, was not deleted."
        " To use it with its data, write `volume_id: vol-0f1e2d3c` instead of `size`."
    )
    snapshot = {"account": ACCOUNT, "snapshot_id": "snap-0f1e2d3c"}
    for other in (disk(aws=snapshot), disk(volume_id="vol-0f1e2d3c")):
        assert planned(tree(other), live).warnings == ()
    assert planned(tree(disk()), ledger()).warnings == ()


def test_it_grows_in_place() -> None:
    """The step names the disk, so that no other one is created."""
    live = ledger(there(disk()))
    (change,) = planned(tree(disk(size=20 * GB)), live).changes
    (step,) = change.steps
    assert (change.action, step.verb) == (Action.UPDATE, "volume.update")
    assert (step.arguments[DISK]["id"], step.arguments[DISK]["place"]["size_gb"]) == ("vol-1", 20)


def test_it_does_not_shrink() -> None:
    """The change is blocked, whatever is permitted."""
    live = ledger(there(disk()))
    (held,) = planned(tree(disk(size=5 * GB)), live, allow_destroy=True).held
    assert held.by is HeldBy.PROTECTION
    assert "cannot shrink" in held.detail


@pytest.mark.parametrize(
    "changed",
    [
        {"availability_zone": "us-east-1b"},
        {"aws": {"account": ACCOUNT, "encrypted": False}},
        {"aws": {"account": ACCOUNT, "snapshot_id": "snap-0f1e2d3c"}},
        {"volume_id": "vol-0f1e2d3c", "size": None},
    ],
)
def test_another_disk_needs_a_permission(changed: dict[str, Any]) -> None:
    """It takes the place of the first, which stays in the account."""
    live = ledger(there(disk()))
    (held,) = planned(tree(disk(**changed)), live).held
    assert (held.by, held.change.action) == (HeldBy.DESTRUCTIVE, Action.REPLACE)
    (change,) = planned(tree(disk(**changed)), live, allow_destroy=True).changes
    assert [step.verb for step in change.steps] == ["volume.forget", "volume.make"]
    assert change.steps[1].arguments[DISK]["id"] == ""


EMPTY = "the new disk is empty"
KEPT_AS_SNAPSHOT = (
    "vol-1 in us-east-1a is deleted once a snapshot of it is complete, and AWS bills the snapshot until you"
    " delete it (`deletion_policy: snapshot`)"
)
RETAINED = (
    "vol-1 in us-east-1a stays, with its data, and AWS bills it until you delete it"
    " (`deletion_policy: retain`)"
)


@pytest.mark.parametrize(
    ("policy", "changed", "new", "old"),
    [
        ("retain", {}, EMPTY, RETAINED),
        (
            "snapshot",
            {},
            EMPTY,
            KEPT_AS_SNAPSHOT,
        ),
        (
            "delete",
            {},
            EMPTY,
            "all data on vol-1 in us-east-1a, which is deleted without a snapshot (`deletion_policy: delete`)",
        ),
        (
            "retain",
            {"aws": {"account": ACCOUNT, "snapshot_id": "snap-1"}},
            "the new disk begins with snap-1",
            RETAINED,
        ),
        (
            "retain",
            {"volume_id": "vol-2", "size": None},
            "the volume has the data of vol-2 then, and not that of the old disk",
            RETAINED,
        ),
    ],
)
def test_a_replacement_says_what_becomes_of_the_data(
    policy: str, changed: dict[str, Any], new: str, old: str
) -> None:
    """Of both disks: with what the new one begins, and whether the old one stays and costs something."""
    live = ledger(there(disk(deletion_policy=policy)))
    after = disk(availability_zone="us-east-1b", deletion_policy=policy, **changed)
    (held,) = planned(tree(after), live).held
    assert held.change.at_stake == f"{new}; {old}"


def test_a_default_that_is_written_changes_no_disk() -> None:
    """`encrypted: true` is what the disk is."""
    live = ledger(there(disk()))
    (change,) = planned(tree(disk(aws={"account": ACCOUNT, "encrypted": True})), live).changes
    assert change.action is Action.UPDATE
    assert not change.destructive


@pytest.mark.parametrize(
    ("policy", "verb", "is_destructive"),
    [
        ("retain", "volume.forget", False),
        ("snapshot", "volume.snapshot", False),
        ("delete", "volume.remove", True),
    ],
)
def test_its_removal(policy: str, verb: str, is_destructive: bool) -> None:
    """The policy decides about the disk, which the step names."""
    live = ledger(there(disk(deletion_policy=policy)))
    (change,) = planned(tree(), live, allow_destroy=True).changes
    (step,) = change.steps
    assert (step.verb, change.destructive) == (verb, is_destructive)
    assert step.arguments[DISK]["id"] == "vol-1"


def test_a_registered_disk_is_only_released() -> None:
    """Whatever its policy says."""
    registered = disk(volume_id="vol-1", size=None, deletion_policy="delete")
    (change,) = planned(tree(), ledger(there(registered)), allow_destroy=True).changes
    assert [step.verb for step in change.steps] == ["volume.forget"]
    assert not change.destructive


@pytest.mark.parametrize(
    ("fleet", "problem"),
    [
        ({"availability_zones": ["us-east-1a"]}, ""),
        ({}, "no fleet that the run may use has its hosts there"),
        ({"availability_zones": ["us-east-1b"]}, "volume data is in zone us-east-1a"),
    ],
)
def test_a_run_needs_hosts_in_the_zone_of_its_disk(fleet: dict[str, Any], problem: str) -> None:
    """Otherwise it is blocked, with the zone to declare."""
    run = task("train", volumes=[{"name": "data", "path": "/data"}], fleets=["gpus"])
    live = ledger(there(disk()), row(gpus(**fleet)))
    plan = planned(tree(disk(), gpus(**fleet), run), live)
    assert [problem in one.detail for one in plan.held] == ([True] if problem else [])


def test_a_disk_is_on_one_host() -> None:
    """A run with several nodes is blocked."""
    run = task("train", volumes=[{"name": "data", "path": "/data"}], fleets=["gpus"], nodes=2)
    fleet = gpus(availability_zones=["us-east-1a"])
    (held,) = planned(tree(disk(), fleet, run), ledger(there(disk()), row(fleet))).held
    assert "attached to one host at a time, and the run has 2 nodes" in held.detail


def efs() -> Declared:
    aws = {"account": ACCOUNT, "file_system": "efs"}
    return disk(volume_id="fs-1", size=None, availability_zone=None, aws=aws)


@pytest.mark.parametrize(
    ("regions", "problem"),
    [(["us-east-1"], ""), (["us-west-2"], "volume data is in region us-east-1 of account")],
)
def test_a_file_system_is_on_many_hosts(regions: list[str], problem: str) -> None:
    """A run with several nodes may mount it, on hosts of any zone of its region."""
    run = task("train", volumes=[{"name": "data", "path": "/data"}], fleets=["gpus"], nodes=2)
    fleet = gpus(regions=regions)
    plan = planned(tree(efs(), fleet, run), ledger(there(efs()), row(fleet)))
    assert [problem in one.detail for one in plan.held] == ([True] if problem else [])


def test_a_file_system_is_released() -> None:
    """The plan says where it stays."""
    (change,) = planned(tree(), ledger(there(efs()))).changes
    assert [step.verb for step in change.steps] == ["volume.forget"]
    stays = "no data is lost; vol-1 in us-east-1 stays, with its data, as every disk that `volume_id` names"
    assert change.at_stake == stays
