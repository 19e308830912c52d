"""Which removed element of a sweep an added one replaces."""

from __future__ import annotations

import itertools
import random

from fleetform.model.plan import Action, Plan, Reason
from fleetform.model.run import RunState
from fleetform.plan.renames import pair_elements
from unit.plan.trees import element, item, ledger, planned, row, tree


def pairs(plan: Plan) -> dict[str, str]:
    return {change.key.name: change.replaces for change in plan.changes if change.replaces}


def test_one_value_changed() -> None:
    """Elements that differ in the one parameter that was edited are pairs."""
    old = [element("s", batch=batch, lr=lr) for batch in (16, 32) for lr in (0.1, 0.2)]
    new = [element("s", batch=batch, lr=lr) for batch in (16, 32) for lr in (0.1, 0.3)]
    plan = planned(tree(*new), ledger(*map(row, old)))
    assert pairs(plan) == {
        "s[batch=16,lr=0.3]": "s[batch=16,lr=0.2]",
        "s[batch=32,lr=0.3]": "s[batch=32,lr=0.2]",
    }
    (change, _) = plan.changes
    assert (change.action, change.reasons) == (Action.REPLACE, (Reason.ELEMENT_REPLACED,))
    assert [(one.path, one.before, one.after) for one in change.fields] == [("matrix.lr", 0.2, 0.3)]
    assert [step.verb for step in change.steps] == ["run.archive", "run.submit"]


def test_an_inserted_value_runs_one_element_and_touches_no_other() -> None:
    """The identity of an element is its values."""
    old = [element("s", lr=lr) for lr in (1, 3)]
    plan = planned(tree(*old, element("s", lr=2)), ledger(*map(row, old)))
    assert [(change.key.name, change.action) for change in plan.changes] == [
        ("s[lr=2]", Action.CREATE)
    ]


def test_arrays_pair_in_order_of_number() -> None:
    """Index 9 comes before index 10."""
    plan = planned(
        tree(item("a", 11), item("a", 12)), ledger(row(item("a", 10)), row(item("a", 9)))
    )
    assert pairs(plan) == {"a[11]": "a[9]", "a[12]": "a[10]"}


def test_what_is_left_comes_or_goes() -> None:
    """Only as many are paired as there are on both sides."""
    old = [row(element("s", lr=lr)) for lr in (1, 2, 3)]
    plan = planned(tree(element("s", lr=9)), ledger(*old))
    actions = [change.action for change in plan.changes]
    assert sorted(actions) == [Action.ARCHIVE, Action.ARCHIVE, Action.REPLACE]


def test_sweeps_are_apart() -> None:
    """An element never replaces another sweep's."""
    plan = planned(tree(element("new", lr=1)), ledger(row(element("old", lr=1))))
    assert pairs(plan) == {}


def test_replacing_running_work_is_destructive() -> None:
    """A pair is judged by what its removed half loses."""
    live = ledger(row(element("s", lr=1), RunState.RUNNING, gpus=4))
    plan = planned(tree(element("s", lr=2)), live, allow_destroy=True)
    (change,) = plan.changes
    assert change.destructive
    assert "4 GPUs" in change.at_stake
    assert [step.verb for step in change.steps] == ["run.stop", "run.archive", "run.submit"]
    assert planned(tree(element("s", lr=2)), live).is_empty


def test_the_order_of_the_input_does_not_matter() -> None:
    """Pairs are the same however rows and declarations are listed."""
    shuffle = random.Random(7)
    added = [element("s", a=a, b=b) for a in range(4) for b in (7, 8)]
    removed = [row(element("s", a=a, b=b)) for a in range(3) for b in (1, 2)]
    expected = {(one.key, old.key) for one, old in pair_elements(added, removed).pairs}
    for _ in range(20):
        shuffle.shuffle(added)
        shuffle.shuffle(removed)
        found = {(one.key, old.key) for one, old in pair_elements(added, removed).pairs}
        assert found == expected


def test_many_parameters_find_the_nearest() -> None:
    """With more parameters than subsets can be tried for, an edit of one is still found."""
    names = "abcdefgh"
    values = [one for one in itertools.product((0, 1), repeat=8) if one[-1] == 0]
    old = [row(element("s", **dict(zip(names, one, strict=True)))) for one in values]
    new = [element("s", **{**dict(zip(names, one, strict=True)), "h": 5}) for one in values]
    found = pair_elements(new, old).pairs
    assert len(found) == 128
    for declared, live_row in found:
        assert declared.key.name.replace("h=5", "h=0") == live_row.key.name
