"""
The exit codes of `plan`, `apply` and `status`: one pure function a command, for pipelines branch on them.

Each function is a table that is read top down; the first row that fits holds. What the codes mean for
people stands in `cli.exit`, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fleetform.model.plan import Plan, Settled
from fleetform.model.run_state import FINAL, NO_EVIDENCE, RunState
from fleetform.model.selection import Selection

if TYPE_CHECKING:
    from fleetform.model.ports import RunHistory

__all__ = [
    "BLOCKED",
    "CHANGES",
    "CONVERGED",
    "ERROR",
    "POLICY",
    "RUN_FAILED",
    "apply_code",
    "exit_code_of_apply",
    "exit_code_of_plan",
    "exit_code_of_status",
    "plan_code",
]

CONVERGED = 0
ERROR = 1
CHANGES = 2
BLOCKED = 3
RUN_FAILED = 4
POLICY = 7


# -- the tables ------------------------------------------------------------------------------


def exit_code_of_plan(
    *, is_recovering: bool, is_blocked: bool, has_failed: bool, has_changes: bool, detailed: bool
) -> int:
    """
    Map a plan that was shown to the code of `fleetform plan`.

    A ledger that is recovering may be wrong about everything, also about what does not differ: it is
    an error for everybody. What else a plan says has codes only with `--detailed-exitcode`.
    """
    if is_recovering:
        return ERROR
    if not detailed:
        return CONVERGED
    if is_blocked:
        return BLOCKED
    if has_failed:
        return RUN_FAILED
    return CHANGES if has_changes else CONVERGED


def exit_code_of_apply(*, has_error: bool, is_blocked: bool, has_failed: bool) -> int:
    """
    Map the end of an apply to its code.

    Args:
        has_error: A step failed, or the ledger is recovering.
        is_blocked: A change stays blocked, or a run waits for a host that does not answer or for an account.
        has_failed: A run that it started, followed or was asked about ended other than `done`.
    """
    if has_error:
        return ERROR
    if is_blocked:
        return BLOCKED
    return RUN_FAILED if has_failed else CONVERGED


def exit_code_of_status(*, is_trusted: bool, has_failed: bool, needs_attention: bool) -> int:
    """
    Map the state of an environment to the code of `fleetform status --exit-code`.

    Args:
        is_trusted: The ledger can be read and is not recovering; else nothing else is known.
        has_failed: A run failed, was aborted, can never be placed, or its outcome is unknown.
        needs_attention: Anything else: a blocked change, drift, a silent host, an apply that failed,
            work without a controller.
    """
    if not is_trusted:
        return ERROR
    if has_failed:
        return RUN_FAILED
    return BLOCKED if needs_attention else CONVERGED


# -- what they are asked about ---------------------------------------------------------------


def plan_code(plan: Plan, *, detailed: bool) -> int:
    """Return the code of `fleetform plan` for this plan."""
    return exit_code_of_plan(
        is_recovering=plan.recovering,
        is_blocked=bool(plan.held or plan.annex.get("unfinished")),
        has_failed=any(one.is_failure for one in plan.settled),
        has_changes=bool(plan.changes),
        detailed=detailed,
    )


def apply_code(
    plan: Plan,
    failures: Sequence[str] = (),
    runs: Sequence[RunHistory] = (),
    *,
    detached: bool = False,
    blocks_runs: bool = False,
) -> int:
    """
    Return the code of an apply of this plan.

    Args:
        plan: As it was entered, or as it was shown where it has nothing to carry out.
        failures: A sentence for each step that failed.
        runs: Those that it started or followed, as they are now.
        detached: It did not wait for them, so that only a run that can never start counts.
        blocks_runs: A run that it did not wait for cannot start until a person does something.
    """
    ends = tuple(one for one in runs if not detached or one.run.state is RunState.UNSCHEDULABLE)
    return exit_code_of_apply(
        has_error=bool(failures) or plan.recovering,
        is_blocked=bool(plan.held) or blocks_runs or any(map(_is_waiting, ends)),
        has_failed=any(map(_has_failed, ends)) or bool(_asked_about(plan, runs)),
    )


def _is_waiting(history: RunHistory) -> bool:
    """Tell of a run that an apply does not wait for any longer whether it may still go on."""
    return history.run.state not in FINAL and not _is_unknowable(history)


def _has_failed(history: RunHistory) -> bool:
    """Tell whether a run ended other than it should: `done`, removed, or as `state: stopped` says."""
    if _is_unknowable(history):
        return True
    run = history.run
    if run.state not in FINAL or run.state is RunState.DONE or history.archived:
        return False
    return run.template.wanted != "stopped"


def _is_unknowable(history: RunHistory) -> bool:
    """Tell whether only a person can say how it ended: no host has a record of it."""
    return history.run.cause == NO_EVIDENCE


def _asked_about(plan: Plan, runs: Sequence[RunHistory]) -> list[Settled]:
    """Name the runs that ended before, and that `--target` or `--replace` asks about."""
    asked = Selection((*plan.scope.targets, *plan.scope.replaces))
    followed = {history.run.name for history in runs}
    return [
        one
        for one in plan.settled
        if one.key.name not in followed and asked.selects(one.key, one.key.parent)
    ]
