"""What a plan's exit code is: one table, because pipelines branch on it."""

from __future__ import annotations

from fleetform.model.plan import Plan

CONVERGED = 0
CHANGES = 2
HELD = 3
RUN_FAILED = 4


def exit_code(plan: Plan, *, detailed: bool) -> int:
    """
    Say what a plan that nobody carries out means to a script.

    The first row that fits holds: what is held needs somebody to decide, a failed run needs
    somebody to look, and changes only need an apply. A ledger that is recovering holds everything
    back, also what it knows nothing of: a plan without changes is then no proof of anything.

    Args:
        plan: As planned; errors never get this far.
        detailed: `--detailed-exitcode`: whether changes have a code of their own.
    """
    if plan.held or plan.recovering:
        return HELD
    if plan.settled:
        return RUN_FAILED
    if detailed and plan.changes:
        return CHANGES
    return CONVERGED
