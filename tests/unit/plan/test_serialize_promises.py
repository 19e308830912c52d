"""What holds for every plan that is put into a file, whatever has happened to tree and ledger."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import pytest

from fleetform.checker import check
from fleetform.checker.saved import check_saved
from fleetform.model.live import LiveResource
from fleetform.model.plan import Kept, Plan
from fleetform.model.run_state import FINAL, RunState
from fleetform.plan.planner import plan as make_plan
from fleetform.plan.preconditions import failing
from fleetform.plan.serialize import dump, load, sealed
from fleetform.spec.desired import ResourceKey
from unit.plan.histories import History, history
from unit.plan.trees import NOW_MS

# The faults that led to this were met once in 20 to 500 of them; each takes some 5 ms.
BLOCKS, SIZE = 6, 100

TAKES_DATA = {"volume.remove", "volume.snapshot", "volume.forget"}
IDLE = {*FINAL, RunState.PENDING, RunState.SUBMITTED}

blocks = pytest.mark.parametrize("block", range(BLOCKS))


@cache
def histories(block: int) -> tuple[tuple[int, History, Plan], ...]:
    numbers = range(block * SIZE, (block + 1) * SIZE)
    return tuple((number, one := history(number), planned(one)) for number in numbers)


def planned(one: History) -> Plan:
    return make_plan(
        one.desired, one.live, permissions=one.permissions, scope=one.scope, now_ms=NOW_MS
    )


@blocks
def test_a_second_reader_finds_nothing(block: int) -> None:
    """No plan breaks an invariant, and none is taken for one that does."""
    for number, one, plan in histories(block):
        found = check(plan, one.desired, one.live, one.permissions, one.scope)
        assert [violation.sentence for violation in found] == [], number


@blocks
def test_what_is_saved_may_be_applied_while_nothing_changes(block: int) -> None:
    """Whoever has read a plan and kept it enters that one, of whatever part it is."""
    for number, one, plan in histories(block):
        kept = Kept("k" * 32, NOW_MS, "me", one.permissions)
        read = load(dump(sealed(replace(plan, kept=kept))))
        assert failing(read, one.live) == (), number
        found = check_saved(read, one.live)
        assert [violation.sentence for violation in found] == [], number


@blocks
def test_nobody_at_work_loses_data(block: int) -> None:
    """A volume goes after the end of whoever has it mounted, by whatever document, or it stays."""
    for number, one, plan in histories(block):
        before = {
            step.resource: ResourceKey(step.resource.kind, step.arguments["from"])
            for step in plan.steps
            if step.verb == "resource.move"
        }
        going = [step.resource for step in plan.steps if step.verb in TAKES_DATA]
        gone = {before.get(key, key).name for key in going}
        stopped = [step.resource for step in plan.steps if step.verb == "run.stop"]
        ended = {before.get(key, key) for key in stopped}
        for key, row in one.live.resources.items():
            if key not in ended:
                assert not gone & mounted(row), (number, key)


def mounted(row: LiveResource) -> set[str]:
    """Names of the volumes that what is at work under a name has mounted."""
    if row.run is None:
        return set()
    documents = [] if row.run.state in IDLE else [row.document]
    documents += [] if row.run.earlier is None else [row.run.earlier.document]
    return {mount["name"] for text in documents for mount in json.loads(text).get("volumes", ())}
