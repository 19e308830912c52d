from __future__ import annotations

import pytest

from fleetform.cli.exit import Exit, of_plan
from fleetform.model.plan import Action, Change, Held, HeldBy, Plan, Reason, Settled
from fleetform.spec.desired import ResourceKey

KEY = ResourceKey("run", "train")
CHANGE = Change(KEY, Action.CREATE, (Reason.ABSENT,), "task")
HELD = Held(CHANGE, HeldBy.DESTRUCTIVE, "it is running")
SETTLED = Settled(KEY, "failed", "exit code 1")


def plan_of(*, changes=(), held=(), settled=()):
    return Plan("uid", "lab", "ledger", 1, changes, held=held, settled=settled)


@pytest.mark.parametrize(
    ("plan", "detailed", "code"),
    [
        (plan_of(), False, Exit.OK),
        (plan_of(), True, Exit.OK),
        (plan_of(changes=(CHANGE,)), False, Exit.OK),
        (plan_of(changes=(CHANGE,)), True, Exit.CHANGES),
        (plan_of(held=(HELD,)), False, Exit.HELD),
        (plan_of(settled=(SETTLED,)), False, Exit.RUN_FAILED),
        (plan_of(held=(HELD,), settled=(SETTLED,)), True, Exit.RUN_FAILED),
        (plan_of(changes=(CHANGE,), held=(HELD,), settled=(SETTLED,)), True, Exit.CHANGES),
    ],
)
def test_a_plan_has_one_exit_code(plan, detailed, code):
    """Changes outrank a failed run only where they were asked for, and that outranks held."""
    assert of_plan(plan, detailed=detailed) is code


def test_the_codes_are_the_documented_ones():
    """Scripts branch on these numbers: they never change."""
    assert {code.name: int(code) for code in Exit} == {
        "OK": 0,
        "ERROR": 1,
        "CHANGES": 2,
        "HELD": 3,
        "RUN_FAILED": 4,
        "STALE": 5,
        "LOCKED": 6,
        "POLICY": 7,
        "INTERRUPTED": 130,
        "BROKEN_PIPE": 141,
    }
