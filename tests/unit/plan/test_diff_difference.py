"""Two declarations beside each other."""

from __future__ import annotations

from fleetform.model.plan import Action
from fleetform.model.redaction import Seal
from fleetform.plan.diff import differences, run_differences
from fleetform.spec.desired import Rules
from unit.plan.trees import UID, fleet, task, tree


def test_what_is_the_same_is_not_told() -> None:
    """Two trees that mean the same have no differences, whatever their order and commit."""
    one = tree(fleet("local"), task("a"), commit="1")
    assert differences(one, tree(task("a"), fleet("local"), commit="2")) == ()


def test_sides_are_told_apart() -> None:
    """What one side alone has is added or removed; what both have is compared by field."""
    before = tree(task("a", priority=1), task("gone"))
    after = tree(task("a", priority=2), task("new"))
    found = differences(before, after)
    assert [(str(one.key), one.action) for one in found] == [
        ("run/a", Action.UPDATE),
        ("run/gone", Action.DELETE),
        ("run/new", Action.CREATE),
    ]
    assert [(one.path, one.before, one.after) for one in found[0].fields] == [("priority", 1, 2)]


def test_rules_and_what_is_not_carried_out_are_compared() -> None:
    """A loosened rule and a held run are part of what a commit changes."""
    before = tree(beyond=[task("c", image="a")])
    after = tree(beyond=[task("c", image="b")], rules=Rules(allow_destroy=True))
    found = differences(before, after)
    assert [str(one.key) for one in found] == ["environment/lab", "run/c"]
    assert [one.path for one in found[0].fields] == ["rules.allow_destroy"]


def test_sides_are_compared_as_they_are_and_shown_sealed() -> None:
    """That a token is another one is told, and which it is on neither side, nor of a new run."""
    before, after = (task("a", env={"HF_TOKEN": one}) for one in ("hunter1", "hunter2"))
    new = task("b", env={"HF_TOKEN": "hunter3"})
    found = differences(tree(before), tree(after, new))
    assert "hunter" not in str(found)
    (field,) = found[0].fields
    seal = Seal(UID)
    assert (field.path, field.sensitive) == ("env.HF_TOKEN", True)
    assert (field.before, field.after) == (seal.version("hunter1"), seal.version("hunter2"))
    (same,) = run_differences(before.document, after.document, seal)
    assert (same.before, same.after) == (field.before, field.after)
