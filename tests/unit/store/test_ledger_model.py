"""
The model of an apply that promises of plans are tested with does what the ledger does.

Trees are applied one after another to a ledger in memory. Each plan is carried out twice: by the
model, over the values of the last reading, and by the ledger's own calls. Then they are compared.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fleetform.apply.execute import StepGraph
from fleetform.model.apply import StepOutcome
from fleetform.model.decision import Finish
from fleetform.model.live import Live, LiveResource
from fleetform.model.plan import Permissions, Plan
from fleetform.model.run import RunState, RunUid
from fleetform.model.verbs import ACTS_ON_HOSTS
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.serialize import dump
from fleetform.spec.desired import Desired, ResourceKey
from fleetform.store.ledger import StoredLedger
from fleetform.store.opening import ledger_in_memory
from unit.plan.test_promises import declarations, thorough
from unit.plan.trees import NOW_MS, UID, carry_out, tree

ALL = Permissions(allow_destroy=True, allow_restart=True, allow_deletes=1000)


class Numbers:
    """Implements `model.ports.Ids`: one after another."""

    def __init__(self) -> None:
        self._last = 0

    def uid(self) -> str:
        self._last += 1
        return f"{self._last:032x}"


@thorough
@given(st.lists(declarations(), min_size=2, max_size=3), st.data())
def test_the_model_does_what_the_ledger_does(commits: list[Any], data: st.DataObject) -> None:
    """Rows after each plan mean the same, whichever way it was carried out."""
    ledger = ledger_in_memory(UID, Numbers(), now_ms=0)
    for number, declared in enumerate(commits):
        desired = tree(*declared, commit=f"{number:07x}")
        before = ledger.read_live()
        plan = make_plan(desired, before, permissions=ALL, now_ms=NOW_MS)
        expected, _ = carry_out(plan, before)
        carry_out_for_real(ledger, plan)
        after = ledger.read_live()
        assert meaning(after) == meaning(expected)
        assert (after.rules, after.status) == (expected.rules, after.status)
        let_some_end(ledger, data)
    ledger.close()


def carry_out_for_real(ledger: StoredLedger, plan: Plan) -> None:
    """Every step by the ledger's own calls, in the order of an apply; the world obeys."""
    if plan.is_empty:
        return
    uid = ledger.accept(plan, dump(plan), who="me", now_ms=1).apply_uid
    graph = StepGraph(plan.steps, frozenset())
    while ready := graph.take_ready():
        outward = [step for step in ready if step.verb in ACTS_ON_HOSTS]
        ledger.begin_steps(uid, outward, now_ms=1)
        refused = ledger.finish_steps(
            uid, ready, [StepOutcome(step.key) for step in ready], now_ms=1
        )
        assert not refused
        graph.mark_done(step.key for step in ready)
    ledger.finish_apply(uid, state="done", summary="", now_ms=1)


def let_some_end(ledger: StoredLedger, data: st.DataObject) -> None:
    """What was asked to stop stops, as in the model; of the rest some runs come to their end."""
    fence = ledger.take_fence(who="me", now_ms=1)
    for uid, run in ledger.read_book().runs.items():
        ends: list[RunState | None] = [None, RunState.DONE, RunState.FAILED]
        state = RunState.STOPPED if run.stop_requested else data.draw(st.sampled_from(ends))
        if state is not None:
            finish = Finish(state, "exited", "")
            ledger.commit_transitions([(RunUid(uid), finish)], fence=fence, now_ms=1)


def meaning(live: Live) -> dict[ResourceKey, tuple[Any, ...]]:
    """What a plan reads of each row, without uids and without how far a run has come."""
    return {key: _meaning(row) for key, row in sorted(live.resources.items())}


def _meaning(row: LiveResource) -> tuple[Any, ...]:
    run = row.run
    return (
        # A volume that comes back counts on from the ledger's serial, which a model has not.
        row.generation if row.key.kind != "volume" else None,
        row.digest,
        row.execution_digest,
        row.own_digest,
        json.loads(row.document),
        row.archived,
        row.protected,
        (row.parent, row.element, row.type),
        None if run is None else (run.stale, run.rerun_mark),
    )


def test_a_tree_that_is_declared_twice_changes_nothing() -> None:
    """The same tree once more is an empty plan, on the ledger itself."""
    ledger = ledger_in_memory(UID, Numbers(), now_ms=0)
    desired: Desired = tree()
    carry_out_for_real(ledger, make_plan(desired, ledger.read_live(), permissions=ALL, now_ms=1))
    assert make_plan(desired, ledger.read_live(), permissions=ALL, now_ms=1).is_empty
