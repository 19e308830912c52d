"""Keeps what a plan said, and that an apply had nothing to do, for those who ask afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetform.app.blocked import read_whole_applies
from fleetform.app.clock import RandomIds, SystemClock
from fleetform.app.problems import LedgerProblem
from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable
from fleetform.plan.serialize import dump
from fleetform.store.history import keep_empty_apply
from fleetform.store.history import keep_plan as keep
from fleetform.views.plan.summary import change_summary, summary

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleetform.app.workspace import Workspace
    from fleetform.model.plan import Held, Plan
    from fleetform.store.database import Transaction


def keep_plan(workspace: Workspace, plan: Plan, *, who: str) -> bool:
    """
    Keep a plan that was only shown, if there is a ledger to keep it in; tell whether it is.

    A plan is worth showing whether or not it can be written down: a folder that is read only,
    a full disk, and a writer that takes long are no reason to fail. Into a ledger that is older than
    another nothing is written: each commit makes it look newer.
    """
    if not plan.ledger_id or plan.recovering:
        return False
    try:
        with workspace.backend().open_to_keep(workspace.environment.uid) as transaction:
            _keep(transaction, plan, who=who, now_ms=SystemClock().now_ms())
    except (LedgerUnavailable, LedgerUnusable, LedgerProblem, OSError):
        return False
    return True


def keep_converged(workspace: Workspace, plan: Plan, *, who: str) -> bool:
    """
    Record an apply that had no change to carry out, where the ledger says otherwise of the last one.

    `status` tells which commit is applied, what the last apply blocked and whether it failed. An apply
    that finds all as it is to be ends that, and one of another commit, or that finds other changes
    blocked, says so; all others leave no trace.

    Returns whether the ledger says the same as this plan.
    """
    is_whole = not (plan.destroys or plan.scope.targets or plan.scope.excludes)
    if not is_whole or not plan.ledger_id or plan.recovering:
        return True
    try:
        if _is_known(workspace, plan):
            return True
        with workspace.backend().open_to_keep(workspace.environment.uid) as transaction:
            now_ms = SystemClock().now_ms()
            _keep(transaction, plan, who=who, now_ms=now_ms)
            return keep_empty_apply(
                transaction,
                plan.digest,
                RandomIds().uid(),
                who=who,
                commit=plan.commit,
                summary=summary(plan),
                now_ms=now_ms,
            )
    except (LedgerUnavailable, LedgerUnusable, LedgerProblem, OSError):
        return False


def _is_known(workspace: Workspace, plan: Plan) -> bool:
    found = workspace.read(
        lambda reader: (reader.read_applies(limit=1), read_whole_applies(reader)), None
    )
    if found is None:
        return True
    last, whole = found
    if any(one.state in {"failed", "interrupted"} for one in last):
        return False
    if last and (whole.applied is None or whole.applied.commit != plan.commit):
        return False
    held = () if whole.blocked is None else whole.blocked.held
    return _blocked_texts(held) == _blocked_texts(plan.held)


def _blocked_texts(held: Iterable[Held]) -> list[tuple[str, str, str]]:
    return sorted((str(one.change.key), one.by.value, one.detail) for one in held)


def _keep(transaction: Transaction, plan: Plan, *, who: str, now_ms: int) -> None:
    keep(
        transaction,
        plan.digest,
        dump(plan),
        who=who,
        commit=plan.commit,
        summary=change_summary(plan),
        now_ms=now_ms,
    )
