"""What a volume that was let go has left comes back under its name, and is nobody else's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Action, HeldBy, Reason
from fleetform.model.volume import RetainedData
from fleetform.plan.preconditions import failing
from fleetform.spec.desired import ResourceKey
from fleetform.views.reasons import reason_sentence
from unit.plan.trees import fleet, ledger, planned, row, tree, volume

LOCAL = fleet("local")
LEFT = RetainedData("data", "u-1", "/data")


def left(*rows: LiveResource, there: RetainedData = LEFT) -> Live:
    return replace(ledger(row(LOCAL), *rows), left=(there,))


def test_it_comes_back_with_its_uid() -> None:
    """The same name in the same place is the same volume."""
    (change,) = planned(tree(LOCAL, volume("data")), left()).changes
    assert (change.action, change.reasons) == (Action.CREATE, (Reason.RETURNED,))
    assert reason_sentence(change) == "restored with its data"
    assert [step.arguments["returns"] for step in change.steps] == ["u-1"]


def test_a_path_that_is_changed_back_leads_to_the_same_data() -> None:
    """What is there now is let go in its turn, and the first comes back."""
    moved = row(volume("data", path="/other"))
    plan = planned(tree(LOCAL, volume("data")), left(moved), allow_destroy=True)
    (change,) = plan.changes
    assert change.action is Action.REPLACE
    assert [step.arguments.get("returns") for step in change.steps] == [None, "u-1"]
    assert reason_sentence(change).endswith("; restored with its data")


@pytest.mark.parametrize(
    ("name", "path", "detail"),
    [
        ("texts", "/data", "/data contains the data of volume data, which was released"),
        (
            "data",
            "/data/inner",
            "/data/inner is in /data, which contains the data of the released volume data",
        ),
        ("data", "/", "/data is in /, which contains the data of the released volume data"),
    ],
)
def test_another_volumes_data_is_held(name: str, path: str, detail: str) -> None:
    """By the plan, which knows it, and not by a host in the middle of an apply."""
    plan = planned(tree(LOCAL, volume(name, path=path)), left())
    assert not plan.changes
    (held,) = plan.held
    assert held.by is HeldBy.DEPENDENCY
    assert held.detail.startswith(detail)
    assert held.cure


def test_the_folder_of_all_volumes_is_around_each_of_them() -> None:
    """A volume at `.` has whatever lies in the environment's folder, and lies around the next."""
    for kept, path in ((".", "texts"), ("texts", ".")):
        plan = planned(tree(LOCAL, volume("new", path=path)), left(there=replace(LEFT, path=kept)))
        assert not plan.changes
        (held,) = plan.held
        assert held.detail.startswith("texts is in ., which contains the data")


def test_a_held_replacement_lets_nothing_go() -> None:
    """Whoever is to move onto another's data stays where it is."""
    texts = row(volume("texts", path="/texts"))
    plan = planned(tree(LOCAL, volume("texts")), left(texts), allow_destroy=True)
    assert not plan.changes
    assert plan.held[0].cure.startswith("choose another path")


def test_an_import_may_have_it_under_any_name() -> None:
    """Whoever asks for what is found there has read whose it was."""
    desired = replace(tree(LOCAL, volume("texts")), imports=(ResourceKey("volume", "texts"),))
    (change,) = planned(desired, left()).changes
    assert change.action is Action.ADOPT


def test_a_renamed_volume_comes_back_under_its_new_name() -> None:
    """What it left elsewhere is its own, whatever it is called."""
    now = row(volume("data", path="/other"))
    desired = replace(
        tree(LOCAL, volume("texts")),
        moved=((ResourceKey("volume", "data"), ResourceKey("volume", "texts")),),
    )
    plan = planned(desired, left(now), allow_destroy=True)
    assert "u-1" in [step.arguments.get("returns") for step in plan.steps]


def test_what_a_namesake_left_is_not_what_was_renamed() -> None:
    """The volume has the name by now, and not the data that an earlier one left under it."""
    now = row(volume("texts", path="/other"))
    desired = replace(
        tree(LOCAL, volume("data")),
        moved=((ResourceKey("volume", "texts"), ResourceKey("volume", "data")),),
    )
    plan = planned(desired, left(now), allow_destroy=True)
    assert not plan.changes
    (held,) = plan.held
    assert held.detail == "/data contains the data of an earlier volume data, which was released"


def test_it_no_longer_comes_back_once_others_have_it() -> None:
    """A plan in a file is stale when the data was taken in meanwhile."""
    plan = planned(tree(LOCAL, volume("data")), left())
    assert failing(plan, left()) == ()
    (one,) = failing(plan, ledger(row(LOCAL)))
    assert one.detail == "cannot be restored: another volume has its data now"


def test_another_fleet_on_the_same_machine_keeps_the_data() -> None:
    """It is the same directory, and its mark is this volume's own."""
    other = fleet("other")
    live = ledger(row(LOCAL), row(other), row(volume("data")))
    plan = planned(tree(LOCAL, other, volume("data", on="other")), live, allow_destroy=True)
    (change,) = plan.changes
    assert [step.arguments.get("returns") for step in change.steps] == [None, change.uid]
    assert "left" not in {one.claim for one in plan.predicates}
