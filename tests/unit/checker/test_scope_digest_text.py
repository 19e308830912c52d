"""What a plan says, written anew by its second reader."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import pytest

from fleetform.checker.scope import text_of
from fleetform.model.plan import FieldChange, Plan
from fleetform.plan.serialize import dump
from fleetform.spec.canonical import canonical_json
from unit.plan.test_serialize import inputs
from unit.plan.trees import planned


@pytest.fixture
def sample() -> Plan:
    return planned(*inputs())


def said(plan: Plan) -> dict[str, object]:
    """What the planner has written of the same plan, without what the digest leaves out."""
    whole = json.loads(dump(plan))
    return {name: value for name, value in whole.items() if name not in {"annex", "digest"}}


def test_the_text_is_the_planners_own(sample: Plan) -> None:
    """Two ways of writing one plan come to one text, whose digest the plan bears."""
    text = "".join(text_of(sample))
    assert text == canonical_json(said(sample))
    assert hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() == sample.digest


@pytest.mark.parametrize(
    "field",
    [
        FieldChange("env.A%s", None, 1, before_set=False),
        FieldChange("env.A", [1, {"b": None}], None, after_set=False, forces=True),
        FieldChange("env.A", "a", "b", sensitive=True),
        FieldChange("env.A", None, None, unknown=True, field_class="control"),
    ],
)
def test_each_form_of_a_field_is_written(field: FieldChange, sample: Plan) -> None:
    """What is not set is not said, and null is a value."""
    plan = replace(sample, changes=(replace(sample.changes[0], fields=(field,)),))
    assert "".join(text_of(plan)) == canonical_json(said(plan))
