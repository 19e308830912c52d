from __future__ import annotations

from fleetform.model.plan import Action, Change, FieldChange, Held, HeldBy, Plan, Reason
from fleetform.spec.desired import ResourceKey
from fleetform.views.resources import WITHHELD, withhold_document, withhold_plan


def test_names_are_shown_and_values_are_not():
    """A reader sees that a token is set, and not which."""
    document = {"commands": ["echo"], "env": {"TOKEN": "hunter2"}}
    assert withhold_document(document) == {"commands": ["echo"], "env": {"TOKEN": "(withheld)"}}
    assert withhold_document({"commands": []}) == {"commands": []}


def test_a_plan_says_that_a_value_changes():
    """Whole maps, single variables, held changes: no value is left, and other fields are."""
    fields = (
        FieldChange("env", None, {"TOKEN": "hunter2"}, before_set=False),
        FieldChange("env.TOKEN", "hunter1", "hunter2"),
        FieldChange("environment", "a", "b"),
    )
    change = Change(ResourceKey("run", "a"), Action.UPDATE, (Reason.ABSENT,), "task", fields)
    plan = Plan("uid", "lab", "", 0, (change,), held=(Held(change, HeldBy.BUDGET, "x"),))
    shown = withhold_plan(plan)
    assert "hunter" not in str(shown)
    assert shown.changes[0].fields[1].before == shown.changes[0].fields[1].after == "(withheld)"
    assert shown.changes[0].fields[2].after == "b"
    assert shown.held[0].change == shown.changes[0]


def test_secrets_among_the_parameters_of_a_sweep_are_withheld() -> None:
    """By the parameter's name; others are what people look for."""
    document = {"type": "task", "matrix": {"api_token": "abc123", "lr": 0.1}}
    assert withhold_document(document)["matrix"] == {"api_token": WITHHELD, "lr": 0.1}
