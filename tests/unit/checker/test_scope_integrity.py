"""What a plan does not tell, or tells wrong, is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.checker import Invariant, check
from fleetform.model.plan import Impact
from fleetform.model.run import RunState
from fleetform.spec.desired import Rules
from unit.checker.test_check import edit, example, found, key
from unit.plan.trees import element, ledger, planned, row, tree


def test_a_loss_without_words() -> None:
    """What destroys says what is lost."""
    plan, *rest = example()
    mute = edit(plan, "fleet/old", lambda one: replace(one, at_stake=""))
    assert found(mute, *rest) == {Invariant.IMPACT_STATED}


@pytest.mark.parametrize("stake", [None, Impact(("other",), 1, 0)])
def test_work_that_ends_unnamed(stake: Impact | None) -> None:
    """A run whose work would be ended is named."""
    plan, *rest = example()
    mute = edit(plan, "run/gone", lambda one: replace(one, stake=stake))
    assert found(mute, *rest) == {Invariant.IMPACT_STATED}


def test_other_rules_than_those_applied_last() -> None:
    """A plan does not say that it was judged by the rules that it brings along."""
    plan, *rest = example()
    assert found(replace(plan, rules=Rules(delete_count=99)), *rest) == {
        Invariant.RULES_APPLIED_LAST
    }


@pytest.mark.parametrize("part", ["changes", "held", "warnings", "commit", "rules"])
def test_a_digest_of_something_else(part: str) -> None:
    """Each part of a plan is in its digest; the annex is not."""
    plan, desired, live, allowed = example()
    elements = [row(element("t", lr=one), RunState.RUNNING) for one in range(8)]
    held = planned(tree(broken=[key("run/x")]), ledger(*elements), allow_destroy=True).held
    assert held
    other = {"changes": (), "held": held, "warnings": ("!",), "commit": "", "rules": None}[part]
    broken = check(replace(plan, **{part: other}), desired, live, allowed)
    assert Invariant.DIGEST_RIGHT in {one.invariant for one in broken}
    annexed = replace(plan, annex={**plan.annex, "more": 1})
    assert check(annexed, desired, live, allowed) == ()
