"""A frozen value with a few fields changed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.model.altered import altered
from fleetform.model.plan import Stake, Step
from fleetform.spec.desired import ResourceKey


def test_it_is_what_replace_makes() -> None:
    """Named fields are changed, all others are the same objects, and the first value stays."""
    step = Step("run.stop:run/a", "run.stop", ResourceKey("run", "a"), ("b",), {"cause": "state"})
    assert altered(step, needs=("c",)) == replace(step, needs=("c",))
    assert altered(step, needs=("c",)).arguments is step.arguments
    assert step.needs == ("b",)


def test_a_field_that_is_not_there_is_refused() -> None:
    """A slip in a name is an error, and not a value without it."""
    with pytest.raises(TypeError, match="Stake has no field 'hosts'"):
        altered(Stake(("a",)), hosts=3)
