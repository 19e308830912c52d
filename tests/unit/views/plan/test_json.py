"""A plan for scripts, in a shape that what reads plans of Terraform can read."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from fleetform.model.ledger import LedgerStatus
from fleetform.model.plan import Action, Plan
from fleetform.model.run import RunState
from fleetform.spec.desired import ResourceKey, Rules
from fleetform.views.plan.json import actions_of, to_json
from fleetform.views.plan.schema import plan_schema
from unit.plan.trees import element, fleet, item, ledger, planned, row, task, tree, volume

VALIDATOR = jsonschema.Draft202012Validator(plan_schema())


def shown(plan: Plan) -> dict[str, Any]:
    """The document as a script reads it; that it fits its schema is part of every claim here."""
    document: dict[str, Any] = json.loads(json.dumps(to_json(plan, version="0.1.0")))
    VALIDATOR.validate(document)
    return document


def change_of(document: dict[str, Any], address: str) -> dict[str, Any]:
    (found,) = [one for one in document["resource_changes"] if one["address"] == address]
    return found


def rich_plan() -> Plan:
    """Every action, something held, something that failed before."""
    live = ledger(
        row(fleet("local", nodes=2)),
        row(task("train", env={"LR": "0.1"})),
        row(task("gone"), RunState.RUNNING),
        row(task("over")),
        row(task("bad"), RunState.FAILED, message="exit code 1"),
        row(volume("kept")),
        row(element("sweep", lr=0.1)),
    )
    desired = tree(
        fleet("local", nodes=3),
        task("train", env={"LR": "0.1"}, shell="bash"),
        task("new", priority=3),
        task("bad"),
        element("sweep", lr=0.2),
        item("array", 3),
        rules=Rules(delete_count=9),
    )
    return planned(desired, live)


def test_the_shape_is_terraforms_where_it_can_be() -> None:
    """Actions, whole documents before and after, and what forces a replacement, by their names."""
    document = shown(rich_plan())
    train = change_of(document, "run/train")
    assert train["mode"] == "managed"
    assert (train["type"], train["name"]) == ("task", "train")
    assert train["provider_name"] == "fleetform/run"
    assert train["action_reason"] == "replace_because_cannot_update"
    assert train["change"] == {
        "actions": ["delete", "create"],
        "before": {"type": "task", "commands": ["true"], "env": {"LR": "0.1"}},
        "after": {"type": "task", "commands": ["true"], "env": {"LR": "0.1"}, "shell": "bash"},
        "after_unknown": {},
        "before_sensitive": {},
        "after_sensitive": {},
        "replace_paths": [["shell"]],
    }
    assert document["applyable"] is True
    assert document["complete"] is False, "something is held"
    assert document["errored"] is False
    assert document["format_version"].split(".")[0] == "1"


def test_ours_stands_beside() -> None:
    """What a plan of ours says beyond it: the finer action, why, what holds, what failed before."""
    document = shown(rich_plan())
    train = change_of(document, "run/train")
    assert (train["action"], train["reasons"]) == ("replace", ["execution-changed"])
    assert train["fields"] == [
        {"path": "shell", "after": "bash", "class": "execution", "forces": True}
    ]
    assert train["steps"] == ["run.submit:run/train"]
    (held,) = document["held"]
    assert (held["by"], held["resource_change"]["address"]) == ("destructive", "run/gone")
    assert document["settled"] == [
        {"address": "run/bad", "state": "failed", "detail": "exit code 1"}
    ]
    assert document["progressing"] == ["run/gone"]


def test_elements_have_an_index() -> None:
    """A number in an array, a text in a sweep; their name is the document's."""
    document = shown(rich_plan())
    third = change_of(document, "run/array[3]")
    assert (third["name"], third["index"]) == ("array", 3)
    swept = change_of(document, "run/sweep[lr=0.2]")
    assert (swept["name"], swept["index"]) == ("sweep", "lr=0.2")
    assert swept["change"]["before"]["matrix"] == {"lr": 0.1}
    assert swept["change"]["after"]["matrix"] == {"lr": 0.2}


def test_rules_have_what_changes_of_them() -> None:
    """The environment has no document of its own: both sides are its changed rules."""
    change = change_of(shown(rich_plan()), "environment/lab")["change"]
    assert change["before"] == {"rules": {"delete_count": 5}}
    assert change["after"]["rules"]["delete_count"] == 9


def test_what_is_forgotten_is_gone_from_the_record() -> None:
    """A volume that is kept, and a result that is archived: neither is deleted."""
    document = shown(rich_plan())
    for address in ("volume/kept", "run/over"):
        change = change_of(document, address)["change"]
        assert change["actions"] == ["forget"]
        assert change["after"] is None
        assert change["before"] is not None


def test_what_returns_is_made_and_has_nothing_before() -> None:
    """Tools for Terraform's plans expect null where something is created; our fields say more."""
    live = ledger(row(task("train", priority=3), archived=True))
    change = change_of(shown(planned(tree(task("train")), live)), "run/train")
    assert change["change"]["actions"] == ["create"]
    assert change["change"]["before"] is None
    assert change["change"]["before_sensitive"] is False
    assert change["change"]["after"]["type"] == "task"
    (field,) = change["fields"]
    assert (field["path"], field["before"], "after" in field) == ("priority", 3, False)


def test_a_secret_shows_as_a_version_and_says_where() -> None:
    """The value of a variable that says secret, in fields, in documents, in held changes."""
    old, new = {"HF_TOKEN": "hunter2", "LR": "1"}, {"HF_TOKEN": "hunter3", "LR": "1"}
    plan = planned(
        tree(task("a", env=new), task("b", env=new), task("c", env=new)),
        ledger(row(task("a", env=old)), row(task("b", env=old), RunState.RUNNING)),
    )
    document = shown(plan)
    assert "hunter" not in json.dumps(document)
    change = change_of(document, "run/a")
    assert change["change"]["after_sensitive"] == {"env": {"HF_TOKEN": True}}
    (field,) = change["fields"]
    assert field["sensitive"] is True
    assert field["before"] != field["after"]
    assert field["after"] == change["change"]["after"]["env"]["HF_TOKEN"]
    assert change["change"]["after"]["env"]["LR"] == "1"


def test_a_broken_document_leads_to_what_nobody_knows() -> None:
    """Terraform's word for it is that all of it is unknown."""
    broken = ResourceKey("run", "broken")
    (held,) = shown(planned(tree(broken=[broken]), ledger()))["held"]
    assert held["resource_change"]["change"]["after"] is None
    assert held["resource_change"]["change"]["after_unknown"] is True


def test_what_nothing_carries_out_shows_what_it_would_become() -> None:
    """A held change without steps has its document from the tree, new or changed."""
    new = task("new", image="pytorch")
    old, changed = task("old"), task("old", image="pytorch")
    document = shown(planned(tree(beyond=[new, changed]), ledger(row(old))))
    after = {
        one["resource_change"]["address"]: one["resource_change"]["change"]["after"]
        for one in document["held"]
    }
    assert after == {"run/new": dict(new.document), "run/old": dict(changed.document)}


def test_drift_has_a_place_of_its_own() -> None:
    """What the world has become beside the ledger, one entry a resource; it is no change of ours."""
    plan = planned(tree(fleet("local")), ledger(row(fleet("local"))))
    drift = [
        {"resource": "volume/data", "path": "mode", "before": "0755", "after": "0777"},
        {"resource": "volume/data", "path": "present", "before": True, "after": False},
    ]
    document = shown(replace(plan, annex={**plan.annex, "drift": drift}))
    (one,) = document["resource_drift"]
    assert one["address"] == "volume/data"
    assert one["change"]["before"] == {"mode": "0755", "present": True}
    assert one["change"]["after"] == {"mode": "0777", "present": False}


def test_an_empty_plan_is_complete_and_there_is_nothing_to_apply() -> None:
    """What a pipeline asks first."""
    document = shown(planned(tree(task("a")), ledger(row(task("a")))))
    assert document["complete"] is True
    assert document["applyable"] is False
    assert document["resource_changes"] == []


def test_an_empty_plan_of_a_recovering_ledger_is_not_complete() -> None:
    """That nothing differs from a ledger that may be wrong says nothing."""
    live = ledger(row(task("a")), status=LedgerStatus.RECOVERING)
    document = shown(planned(tree(task("a")), live))
    assert document["recovering"] is True
    assert document["complete"] is False
    assert document["summary"]["text"] == (
        "No changes can be made now, because the ledger is recovering."
    )


def summary_of_a_bot(document: dict[str, Any]) -> str:
    """
    What tools for plans of Terraform make of one: they count actions, and know nothing of ours.

    Written as they do it: unknown versions are refused, a replacement counts on both sides.
    """
    if document["format_version"].partition(".")[0] != "1":
        raise ValueError(document["format_version"])
    counted = Counter(
        action for one in document["resource_changes"] for action in one["change"]["actions"]
    )
    return (
        f"{counted['create']} to add, {counted['update']} to change, {counted['delete']} to destroy"
    )


def test_a_tool_for_terraforms_plans_reads_it() -> None:
    """Counting as such a tool does gives the same numbers as our own last line."""
    plan = rich_plan()
    document = shown(plan)
    ours = Counter(change.action for change in plan.changes)
    added = ours[Action.CREATE] + ours[Action.REPLACE]
    destroyed = ours[Action.DELETE] + ours[Action.REPLACE]
    assert summary_of_a_bot(document) == (
        f"{added} to add, {ours[Action.UPDATE]} to change, {destroyed} to destroy"
    )
    assert min(added, destroyed, ours[Action.UPDATE]) > 0


@pytest.mark.parametrize("action", Action)
def test_each_action_has_a_word(action: Action) -> None:
    """No action of ours is left without one of Terraform's."""
    change = rich_plan().changes[0]
    assert actions_of(replace(change, action=action))


def test_the_schema_is_a_schema() -> None:
    """It is right in its own draft, and notices a key that nobody announced."""
    jsonschema.Draft202012Validator.check_schema(plan_schema())
    document = shown(rich_plan())
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({**document, "surprise": 1})
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate({key: document[key] for key in document if key != "digest"})
