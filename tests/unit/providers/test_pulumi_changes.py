"""Events of the engine become changes: what, in which phase, from what to what."""

from __future__ import annotations

import json
from types import SimpleNamespace as Value

import pytest

from fleetform.providers.pulumi.engine.changes import HIDDEN, Action, Change, Phase, change_of

URN = "urn:pulumi:s::fleetform::aws:ec2/instance:Instance::i-1"
SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270"}


def event(op, *, phase="before", planning=False, old=None, new=None, diff=None, kind="aws:x:Y"):
    metadata = Value(op=op, urn=URN, type=kind, old=old, new=new, detailed_diff=diff)
    return Value(
        resource_pre_event=Value(metadata=metadata, planning=planning) if phase == "before" else None,
        res_outputs_event=Value(metadata=metadata, planning=planning) if phase == "after" else None,
        res_op_failed_event=Value(metadata=metadata) if phase == "failed" else None,
    )  # fmt: skip


def state(**inputs):
    return Value(id="i-0a", inputs=inputs, outputs=inputs)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (event("create", planning=True), (Action.CREATE, Phase.PLANNED, False)),
        (event("create"), (Action.CREATE, Phase.STARTED, False)),
        (event("create", phase="after"), (Action.CREATE, Phase.DONE, False)),
        (event("create", phase="failed"), (Action.CREATE, Phase.FAILED, False)),
        (event("replace", planning=True), (Action.REPLACE, Phase.PLANNED, False)),
        (event("create-replacement"), (Action.CREATE, Phase.STARTED, True)),
        (event("delete-replaced", phase="after"), (Action.DELETE, Phase.DONE, True)),
        (event("import", phase="after"), (Action.IMPORT, Phase.DONE, False)),
        (event("refresh"), (Action.REFRESH, Phase.STARTED, False)),
    ],
)
def test_an_event_is_a_change(given, expected):
    """With the name of its resource."""
    change = change_of(given)
    assert change is not None
    assert (change.action, change.phase, change.is_replacement) == expected
    assert change.name == "i-1"


@pytest.mark.parametrize(
    "given",
    [
        event("same"),
        event("read", phase="after"),
        event("create", phase="after", planning=True),
        event("create-replacement", planning=True),
        event("replace", phase="after"),
        event("create", kind="pulumi:pulumi:Stack"),
        event("create", kind="pulumi:providers:aws"),
        event("a-new-operation"),
        Value(resource_pre_event=None, res_outputs_event=None, res_op_failed_event=None),
        event("refresh", phase="after", old=state(a=1), new=state(a=1)),
    ],
)
def test_other_events_are_none(given):
    """What stays the same, halves that a plan sums up, and what is no resource of the cloud."""
    assert change_of(given) is None


def test_a_refresh_says_what_it_found():
    """Gone, or different."""
    gone = change_of(event("refresh", phase="after", old=state(a=1)))
    other = change_of(event("refresh", phase="after", old=state(a=1), new=state(a=2)))
    assert gone is not None
    assert other is not None
    assert (gone.action, gone.id, other.action) == (Action.DELETE, "i-0a", Action.UPDATE)
    (found,) = other.properties
    assert (found.path, found.before, found.after) == ("a", 1, 2)


def test_properties_have_their_values():
    """By the engine's paths; secrets are hidden."""
    old = state(size=1, tags={"a.b": "x"}, disks=[{"gb": 5}], key=SECRET, gone="g")
    new = state(size=2, tags={"a.b": "y"}, disks=[{"gb": 6}], key="[secret]", fresh={"k": SECRET})
    kinds = {
        "size": "update-replace",
        'tags["a.b"]': "update",
        "disks[0].gb": "update",
        "key": "update",
        "gone": "delete",
        "fresh": "add",
        "absent[3].x": "update",
    }
    diff = {path: Value(diff_kind=kind, input_diff=True) for path, kind in kinds.items()}
    change = change_of(event("replace", planning=True, old=old, new=new, diff=diff))
    assert change is not None
    found = {one.path: (one.before, one.after, one.replaces) for one in change.properties}
    assert found == {
        "size": (1, 2, True),
        'tags["a.b"]': ("x", "y", False),
        "disks[0].gb": (5, 6, False),
        "key": (HIDDEN, HIDDEN, False),
        "gone": ("g", None, False),
        "fresh": (None, {"k": HIDDEN}, False),
        "absent[3].x": (None, None, False),
    }
    assert Change.from_json(json.loads(json.dumps(change.to_json()))) == change
