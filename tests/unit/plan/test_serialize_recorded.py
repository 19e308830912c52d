"""What a recorded plan holds back, read without the rest of it."""

from __future__ import annotations

import dataclasses

import pytest

from fleetform.model.plan import Scope
from fleetform.plan.serialize import dump, recorded_whole, sealed
from unit.plan.trees import fleet, ledger, planned, row, task, tree

LOCAL = fleet("local")
HELD = planned(tree(), ledger(row(LOCAL)))
EMPTY = planned(tree(LOCAL), ledger(row(LOCAL)))
NEW = planned(tree(LOCAL, task("train")), ledger())


@pytest.mark.parametrize("plan", [HELD, EMPTY, NEW])
def test_it_is_what_the_whole_plan_says(plan) -> None:
    """Reading a part gives what reading all gives."""
    assert recorded_whole(dump(plan)) == (False, plan.held)


def test_a_plan_of_a_part_says_nothing_of_the_rest() -> None:
    """Whoever asks for the newest plan of the whole environment reads an older one."""
    targeted = sealed(dataclasses.replace(HELD, scope=Scope(targets=("fleet/*",))))
    assert recorded_whole(dump(targeted)) is None


def test_a_plan_of_destroy_says_that_it_is_one() -> None:
    """It speaks of the whole environment, and applies no configuration."""
    destroying = planned(tree(LOCAL), ledger(row(LOCAL)), destroy=True)
    assert recorded_whole(dump(destroying)) == (True, destroying.held)


def test_a_document_that_looks_like_a_plan_is_not_read_for_one() -> None:
    """Variables may have any name and value."""
    words = {"destroys": "true", "format": "fleetform-plan", "format_version": "2", "held": "[]"}
    (held,) = HELD.held
    change = dataclasses.replace(held.change, before={"env": words, "scope": "x"})
    plan = sealed(dataclasses.replace(HELD, held=(dataclasses.replace(held, change=change),)))
    assert recorded_whole(dump(plan)) == (False, plan.held)


def test_what_is_no_plan_says_nothing() -> None:
    """A body of another release is passed over."""
    assert recorded_whole(b"{}") is None
