"""The text of a plan."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest

from fleetform.model.plan import Change, Deferred, FieldChange, Held, Plan, Predicate, Step
from fleetform.plan.serialize import dump
from fleetform.spec.canonical import canonical_json
from unit.plan.test_serialize import inputs
from unit.plan.trees import planned


@pytest.fixture
def sample() -> Plan:
    return planned(*inputs())


def test_the_text_is_what_the_encoder_would_write(sample: Plan) -> None:
    """Names are sorted at every level, and every value is in its one spelling."""
    text = dump(sample).decode("utf-8", "surrogatepass")
    assert text == canonical_json(json.loads(text)) + "\n"


@pytest.mark.parametrize("kind", [Change, Deferred, FieldChange, Held, Predicate, Step])
def test_no_field_is_left_out(kind: type, sample: Plan) -> None:
    """Every field of a value is in the text."""
    # A side that is not set says so by not being there, and what nearly no field is likewise.
    renamed = {"field_class": "class", "before_set": "before", "after_set": "after"}
    whole = replace(
        sample,
        deferred=(Deferred(sample.changes[0], "excluded by `--exclude`"),),
        changes=tuple(
            replace(
                one,
                cost_max=1,
                fields=tuple(replace(f, sensitive=True, unknown=True) for f in one.fields),
            )
            for one in sample.changes
        ),
    )
    names = {renamed.get(one.name, one.name) for one in fields(kind)}
    assert any(names == set(one) for one in maps_of(json.loads(dump(whole))))


def maps_of(value: object) -> list[dict[str, object]]:
    if isinstance(value, dict):
        return [value, *(one for inner in value.values() for one in maps_of(inner))]
    if isinstance(value, list):
        return [one for inner in value for one in maps_of(inner)]
    return []


def test_what_is_not_json_is_refused(sample: Plan) -> None:
    """A number that JSON does not have stops a plan before anybody digests it."""
    step = replace(sample.steps[0], arguments={"document": {"a": [float("nan")]}})
    broken = replace(sample, changes=(replace(sample.changes[0], steps=(step,)),))
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump(broken)
