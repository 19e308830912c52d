"""Applies that have not finished, against what is declared now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleetform.app.unfinished import Unfinished, differing, read_unfinished, unfinished_annex
from fleetform.model.apply import ApplyRecord
from fleetform.model.history import OperationRecord
from fleetform.plan.exit import BLOCKED, plan_code
from fleetform.plan.serialize import dump
from fleetform.views.plan.markdown import render as render_markdown
from fleetform.views.plan.summary import summary
from fleetform.views.plan.unfinished import unfinished_texts
from unit.plan.trees import NOW_MS, fleet, ledger, planned, row, tree

BEFORE, ENTERED = fleet("gpus", nodes=0), fleet("gpus", nodes=3)
PLAN = planned(tree(ENTERED), ledger(row(BEFORE)))


class Reader:
    """A ledger with one apply of `PLAN`, whose steps have a state."""

    def __init__(self, state: str, step: str) -> None:
        self.state, self.step = state, step

    def read_applies(self, *, limit: int) -> tuple[ApplyRecord, ...]:
        assert limit
        return (ApplyRecord("a" * 32, PLAN.digest, self.state, "ada", "", NOW_MS, None, ""),)

    def read_plan(self, digest: str) -> bytes | None:
        return dump(PLAN) if digest == PLAN.digest else None

    def read_operations(self, _apply_uid: str) -> tuple[OperationRecord, ...]:
        return tuple(
            OperationRecord(one.key, one.verb, one.resource, self.step) for one in PLAN.steps
        )


@pytest.mark.parametrize(
    ("state", "step", "count"), [("running", "intended", 1), ("running", "done", 0)]
)
def test_the_rest_has_a_step_to_come(state, step, count) -> None:
    (found,) = read_unfinished(Reader(state, step))
    assert len(found.rest.changes) == count


def test_a_finished_apply_is_none_of_them() -> None:
    assert read_unfinished(Reader("done", "done")) == ()


def test_what_is_declared_otherwise_differs() -> None:
    """The old document is in the ledger still, and to declare that again is a difference."""
    entered = Unfinished("ada", NOW_MS, PLAN)
    assert differing(entered, tree(ENTERED)) == ()
    assert differing(entered, tree(BEFORE)) == (BEFORE.key,)
    assert differing(entered, tree()) == (BEFORE.key,)


def test_a_removal_differs_where_it_is_declared_again() -> None:
    """`destroy` removes what is declared, so there that is no difference."""
    removal = planned(tree(), ledger(row(BEFORE)), allow_destroy=True)
    assert differing(Unfinished("ada", NOW_MS, removal), tree(BEFORE)) == (BEFORE.key,)
    assert differing(Unfinished("ada", NOW_MS, removal), tree()) == ()
    destroyed = planned(tree(BEFORE), ledger(row(BEFORE)), allow_destroy=True, destroy=True)
    assert differing(Unfinished("ada", NOW_MS, destroyed), tree(BEFORE)) == ()


def test_a_plan_beside_it_is_not_empty() -> None:
    """What the ledger has is declared, and three hosts are created all the same."""
    made = planned(tree(BEFORE), ledger(replace(row(BEFORE), operation="op-1")))
    assert not made.held
    annex = unfinished_annex(Reader("running", "planned"), tree(BEFORE))
    plan = replace(made, annex={**made.annex, "unfinished": annex})
    assert summary(plan) == "No changes can be made now: an earlier apply is not finished."
    assert plan_code(plan, detailed=True) == BLOCKED
    (sentence,) = unfinished_texts(plan)
    assert sentence == (
        f"An apply is not finished: plan {PLAN.digest[:12]}, approved by ada at 2023-11-14T22:13:20Z."
        " Still to come: update fleet/gpus. fleet/gpus is declared differently now:"
        " `fleetform apply` finishes that apply first, then plans what is declared."
    )
    assert "approved by ada" in render_markdown(plan)
