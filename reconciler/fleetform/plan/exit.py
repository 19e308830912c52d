"""What the exit code of a plan is, and of its apply: one table, for pipelines branch on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.model.plan import Plan
from fleetform.model.run_state import FINAL, RunState

if TYPE_CHECKING:
    from fleetform.model.ports import RunHistory

__all__ = ["exit_code", "exit_code_after", "exit_code_of_status"]

CONVERGED = 0
FAILED = 1
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


def exit_code_after(
    plan: Plan, failures: Sequence[str], runs: Sequence[RunHistory], *, detached: bool
) -> int:
    """
    Say what a plan that was carried out means to a script: a step that failed comes first.

    A run of which nobody knows whether it goes on has not succeeded, nor has one that waits for a
    host that is silent: who was not detached has waited for all others. One that was removed has
    ended as it was to, once it has.

    Args:
        plan: As it was entered.
        failures: A sentence for each step that failed.
        runs: Those that were waited for, as they are by now.
        detached: They were not waited for, so that nothing is said of them.
    """
    if failures:
        return FAILED
    if plan.held:
        return HELD
    ended_badly = any(
        run.run.state is not RunState.DONE
        and not (run.archived and run.run.state in FINAL)
        and run.run.template.wanted != "stopped"
        for run in runs
    )
    settled = {item.key.name for item in plan.settled} - {run.run.name for run in runs}
    return RUN_FAILED if (ended_badly and not detached) or settled else CONVERGED


def exit_code_of_status(*, is_trusted: bool, has_failed: bool, needs_attention: bool) -> int:
    """
    Map the state of an environment to the code of `fleetform status --exit-code`.

    Args:
        is_trusted: The ledger can be read and is not recovering; else nothing else is known.
        has_failed: A run failed, can never be placed, or its outcome is unknown.
        needs_attention: Anything else: a blocked change, drift, a silent host, an apply that failed,
            work without a controller.
    """
    if not is_trusted:
        return FAILED
    if has_failed:
        return RUN_FAILED
    return HELD if needs_attention else CONVERGED
