from __future__ import annotations

from fleetform.cli.exit import Exit
from fleetform.plan import exit as of_plan


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


def test_plans_and_commands_agree():
    """What a plan means and what an apply ends with are codes of the same table."""
    assert (Exit.OK, Exit.CHANGES, Exit.HELD, Exit.RUN_FAILED) == (
        of_plan.CONVERGED, of_plan.CHANGES, of_plan.HELD, of_plan.RUN_FAILED,
    )  # fmt: skip
