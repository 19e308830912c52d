"""What a changed volume leads to, and what becomes of its data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from fleetform.model.instance import Instance, InstanceState
from fleetform.model.live import LiveResource
from fleetform.model.plan import Action, HeldBy, Reason
from fleetform.model.run import RunState
from fleetform.model.volume import MADE_ON, NOT_ON
from fleetform.spec.desired import Declared, ResourceKey
from unit.plan.trees import declare, fleet, ledger, planned, row, task, tree, volume

LOCAL = fleet("local")


def test_it_is_forgotten_by_default() -> None:
    """Removing a volume leaves its data where it is, and destroys nothing."""
    (change,) = planned(tree(LOCAL), ledger(row(LOCAL), row(volume("data")))).changes
    assert change.action is Action.FORGET
    assert not change.destructive
    (step,) = change.steps
    assert (step.verb, step.arguments) == (
        "volume.forget",
        {"name": "data", "fleet": "local", "path": "/data"},
    )


def test_its_data_goes_where_the_policy_last_applied_says_so() -> None:
    """`deletion_policy: delete` removes the data, with permission."""
    live = ledger(row(LOCAL), row(volume("data", deletion_policy="delete")))
    assert [one.by for one in planned(tree(LOCAL), live).held] == [HeldBy.DESTRUCTIVE]
    (change,) = planned(tree(LOCAL), live, allow_destroy=True).changes
    assert [step.verb for step in change.steps] == ["volume.remove"]


OWN = f"/srv/state/volumes/{'ab' * 16}"


@pytest.mark.parametrize(
    ("before", "after", "is_held"),
    [
        ("data", f"{OWN}/data", True),
        (f"{OWN}/a/data", "a/data", True),
        ("data", f"{OWN}/other", False),
        ("data", "/srv/data", False),
        ("data", f"{OWN}/a/data", False),
        ("data", "other", False),
    ],
)
def test_a_place_in_other_words(before: str, after: str, is_held: bool) -> None:
    """It is the same directory: replaced by itself, its data would be removed for nothing."""
    live = ledger(row(LOCAL), row(volume("data", path=before, deletion_policy="delete")))
    plan = planned(tree(LOCAL, volume("data", path=after)), live, allow_destroy=True)
    assert [one.by for one in plan.held] == ([HeldBy.PROTECTION] if is_held else [])
    if is_held:
        assert plan.held[0].cure.startswith(f"write `path: {before}` again")


def test_the_policy_changes_in_place() -> None:
    """What shall become of the data later is no reason to touch it now."""
    live = ledger(row(LOCAL), row(volume("data")))
    plan = planned(tree(LOCAL, volume("data", deletion_policy="delete")), live)
    (step,) = plan.steps
    assert step.verb == "volume.update"
    assert "take" not in step.arguments, "what is kept is not made where it is gone"


@pytest.mark.parametrize(
    ("before", "after", "verb"),
    [
        ("retain", "retain", "volume.forget"),
        ("retain", "delete", "volume.forget"),
        ("delete", "retain", "volume.forget"),
        ("delete", "delete", "volume.remove"),
    ],
)
def test_moving_it_is_a_replacement(before: str, after: str, verb: str) -> None:
    """The old data is removed only where both the old and the new policy say so."""
    old = volume("data", deletion_policy=before)
    new = volume("data", path="/new", deletion_policy=after)
    live = ledger(row(LOCAL), row(old))
    assert [one.by for one in planned(tree(LOCAL, new), live).held] == [HeldBy.DESTRUCTIVE]
    (change,) = planned(tree(LOCAL, new), live, allow_destroy=True).changes
    drop, make = change.steps
    assert (drop.verb, make.verb) == (verb, "volume.make")
    assert make.needs == (drop.key,)
    assert drop.arguments["path"] == "/data"


def test_it_stays_while_a_run_has_it_mounted() -> None:
    """Running work keeps its volume, whatever is permitted."""
    user = task("train", volumes=[{"name": "data", "path": "/in"}])
    live = ledger(row(LOCAL), row(volume("data")), row(user, RunState.RUNNING))
    plan = planned(tree(LOCAL, user, volume("data", path="/new")), live, allow_destroy=True)
    assert plan.is_empty
    assert [(one.by, one.detail) for one in plan.held] == [
        (HeldBy.RUNNING_WORK, "run/train has it mounted")
    ]


def test_a_volume_is_put_aside_where_the_plan_says() -> None:
    """Beside where it lay, by the policy last applied; nothing is at stake."""
    document = {"path": "/data", "deletion_policy": "snapshot"}
    live = ledger(row(fleet("local")), row(volume("data", **document)))
    plan = planned(tree(fleet("local")), live)
    (step,) = plan.steps
    uid = live.resources[ResourceKey("volume", "data")].uid
    assert step.arguments["into"] == f"/data.snapshot-data-{uid[:12]}"
    assert plan.changes[0].at_stake == (
        f"no data is lost; its data is moved to {step.arguments['into']} on fleet local"
    )
    assert not plan.changes[0].destructive


def test_a_volume_whose_removal_failed_is_made_again() -> None:
    """Declared as it was before, it is asked for again: it may be gone, unheard."""
    failed = replace(row(volume("v", "f")), digest="", state="failed")
    live = ledger(row(fleet("f")), failed)
    (change,) = planned(tree(fleet("f"), volume("v", "f")), live).changes
    assert (change.action, change.reasons) == (Action.UPDATE, (Reason.UNFINISHED,))
    (step,) = change.steps
    assert (step.verb, step.arguments["take"]) == ("volume.update", "any")


def _ssh_fleet(*hosts: str) -> Declared:
    listed = [{"hostname": name} for name in hosts]
    document = {"type": "fleet", "ssh_config": {"hosts": listed}}
    return declare("fleet", "lab", document)


def _made(declared: Declared, *hosts: str, **lacking: str) -> LiveResource:
    made = row(declared)
    outputs = json.dumps({MADE_ON: list(hosts), NOT_ON: lacking})
    digest = {"digest": ""} if lacking else {}
    return replace(made, outputs=outputs, **digest)


def _on(*hosts: str, **document: Any) -> Declared:
    listed = {"hosts": list(hosts)} if hosts else {}
    return volume("data", "lab", **listed, **document)


def test_a_host_that_is_added_gets_a_new_directory() -> None:
    """The step names the hosts that have it already: on those a missing one is no new one."""
    lab = _ssh_fleet("a", "b")
    plan = planned(tree(lab, _on("a", "b")), ledger(row(lab), _made(_on("a"), "a")))
    (step,) = plan.steps
    assert (step.verb, step.arguments["hosts"]) == ("volume.update", ["a", "b"])
    assert step.arguments["made_on"] == ["a"]
    assert "take" not in step.arguments


@pytest.mark.parametrize(
    ("before", "after", "data"),
    [
        ("retain", "retain", "retain"),
        ("retain", "delete", "retain"),
        ("delete", "delete", "delete"),
        ("delete", "retain", "retain"),
        ("snapshot", "snapshot", "snapshot"),
    ],
)
def test_a_host_leaves_as_the_policy_says(before: str, after: str, data: str) -> None:
    """Its data alone is kept, deleted with permission, or put aside, before the rest is updated."""
    lab = _ssh_fleet("a", "b")
    live = ledger(row(lab), _made(_on("a", "b", deletion_policy=before), "a", "b"))
    desired = tree(lab, _on("a", deletion_policy=after))
    held = [one.by for one in planned(desired, live).held]
    assert held == ([HeldBy.DESTRUCTIVE] if data == "delete" else [])
    (change,) = planned(desired, live, allow_destroy=True).changes
    withdraw, update = change.steps
    assert (withdraw.verb, withdraw.arguments["data"]) == ("volume.withdraw", data)
    assert (withdraw.arguments["hosts"], withdraw.arguments["stays_on"]) == (["b"], ["a"])
    assert update.needs == (withdraw.key,)
    assert "host b of fleet lab" in change.at_stake


def test_no_host_leaves_while_a_run_has_the_volume_mounted() -> None:
    """Running work keeps its volume on each host."""
    lab = _ssh_fleet("a", "b")
    user = task("train", volumes=[{"name": "data", "path": "/in"}])
    live = ledger(row(lab), _made(_on("a", "b"), "a", "b"), row(user, RunState.RUNNING))
    plan = planned(tree(lab, user, _on("a")), live)
    assert [one.by for one in plan.held] == [HeldBy.RUNNING_WORK]


def test_a_host_that_leaves_its_fleet_too_is_withdrawn_first() -> None:
    """Afterwards nobody could ask it about the data."""
    before, after = _ssh_fleet("a", "b"), _ssh_fleet("a")
    live = ledger(row(before), _made(_on("a", "b"), "a", "b"))
    steps = {one.verb: one for one in planned(tree(after, _on("a")), live).steps}
    assert steps["volume.withdraw"].key in steps["fleet.update"].needs
    assert steps["fleet.update"].key in steps["volume.update"].needs


def test_a_fleet_that_grows_takes_its_volumes_along() -> None:
    """Those that all its hosts have; one that lists its hosts stays as it is."""
    before, after = _ssh_fleet("a"), _ssh_fleet("a", "b")
    some = volume("some", "lab", path="/some", hosts=["a"])
    live = ledger(row(before), _made(_on(), "a"), _made(some, "a"))
    plan = planned(tree(after, _on(), some), live)
    assert {(str(one.key), one.reasons[0]) for one in plan.changes if one.key.kind == "volume"} == {
        ("volume/data", Reason.HOSTS_LACK_IT)
    }


@pytest.mark.parametrize("state", [InstanceState.UNREACHABLE, InstanceState.READY])
def test_a_host_without_the_directory_gets_it_once_it_answers(state: InstanceState) -> None:
    """Until then the change is blocked, and the host is named."""
    lab = _ssh_fleet("a", "b")
    instances = (
        Instance("1", "a", "lab", 0, InstanceState.READY, provider="ssh"),
        Instance("2", "b", "lab", 1, state, provider="ssh"),
    )
    live = ledger(row(lab), _made(_on("a", "b"), "a", b="it did not answer"))
    plan = planned(tree(lab, _on("a", "b")), replace(live, instances=instances))
    if state is InstanceState.READY:
        (change,) = plan.changes
        assert change.reasons == (Reason.HOSTS_LACK_IT,)
    else:
        (held,) = plan.held
        assert "host b does not answer" in held.detail


@pytest.mark.parametrize(("nodes", "is_held"), [(1, False), (2, True)])
def test_a_run_needs_hosts_with_all_of_its_volumes(nodes: int, is_held: bool) -> None:
    """What can never be placed is blocked, and says which hosts there are."""
    lab, other = _ssh_fleet("a", "b", "c"), volume("other", "lab", path="/o", hosts=["b", "c"])
    mounts = [{"name": "data", "path": "/d"}, {"name": "other", "path": "/o"}]
    gang = task("gang", volumes=mounts, nodes=nodes)
    live = ledger(row(lab), _made(_on("a", "b"), "a", "b"), _made(other, "b", "c"))
    plan = planned(tree(lab, _on("a", "b"), other, gang), live)
    assert [one.detail for one in plan.held] == (
        ["it needs 2 hosts with volumes data, other, and b has all of them"] if is_held else []
    )
