"""What a recorded plan holds back, read without the rest of it."""

from __future__ import annotations

import dataclasses

import pytest

from fleetform.model.plan import Scope
from fleetform.plan.serialize import dump, recorded_holds, sealed
from unit.plan.trees import fleet, ledger, planned, row, task, tree

LOCAL = fleet("local")
HELD = planned(tree(), ledger(row(LOCAL)))
EMPTY = planned(tree(LOCAL), ledger(row(LOCAL)))
NEW = planned(tree(LOCAL, task("train")), ledger())


@pytest.mark.parametrize("plan", [HELD, EMPTY, NEW])
def test_it_is_what_the_whole_plan_says(plan) -> None:
    """Reading a part gives what reading all gives."""
    assert recorded_holds(dump(plan)) == plan.held


def test_a_plan_of_a_part_says_nothing_of_the_rest() -> None:
    """Neither does one of `destroy`: whoever asks for the newest word reads an older plan."""
    targeted = sealed(dataclasses.replace(HELD, scope=Scope(targets=("fleet/*",))))
    destroying = planned(tree(LOCAL), ledger(row(LOCAL)), destroy=True)
    assert recorded_holds(dump(targeted)) is None
    assert recorded_holds(dump(destroying)) is None


def test_a_document_that_looks_like_a_plan_is_not_read_for_one() -> None:
    """Variables may have any name and value."""
    words = {"destroys": "true", "format": "fleetform-plan", "format_version": "2", "held": "[]"}
    (held,) = HELD.held
    change = dataclasses.replace(held.change, before={"env": words, "scope": "x"})
    plan = sealed(dataclasses.replace(HELD, held=(dataclasses.replace(held, change=change),)))
    assert recorded_holds(dump(plan)) == plan.held


def test_what_is_no_plan_says_nothing() -> None:
    """A body of another release is passed over."""
    assert recorded_holds(b"{}") is None
