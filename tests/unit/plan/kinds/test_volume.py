"""What a changed volume leads to, and what becomes of its data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.plan import Action, HeldBy, Reason
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey
from unit.plan.trees import fleet, ledger, planned, row, task, tree, volume

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
        f"none: its data is moved to {step.arguments['into']} on fleet local"
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
