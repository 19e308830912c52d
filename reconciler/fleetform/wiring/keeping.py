"""Keeps what a plan said, for those who ask afterwards."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from fleetform.model.refusals import LedgerUnavailable, LedgerUnusable
from fleetform.plan.file import dump
from fleetform.store.history import keep_plan as keep
from fleetform.store.keeping import open_to_keep
from fleetform.views.plan_summary import summary
from fleetform.wiring.clock import SystemClock
from fleetform.wiring.ledger_address import ledger_address, postgresql
from fleetform.wiring.problems import LedgerProblem

if TYPE_CHECKING:
    from fleetform.model.plan import Plan
    from fleetform.store.database import Transaction
    from fleetform.wiring.workspace import Workspace

__all__ = ["keep_plan"]


def keep_plan(workspace: Workspace, plan: Plan, *, who: str) -> bool:
    """
    Keep a plan that was only shown, if there is a ledger to keep it in; tell whether it is.

    A plan is worth showing whether or not anybody can write it down: a folder that is read only,
    a full disk, and a writer that takes long are no reason to fail. Into a ledger that is older than
    another nothing is written: each commit makes it look newer.
    """
    if not plan.ledger_id or plan.recovering:
        return False
    try:
        with _open(workspace) as transaction:
            keep(
                transaction,
                plan.digest,
                dump(plan),
                who=who,
                commit=plan.commit,
                summary=summary(plan),
                now_ms=SystemClock().now_ms(),
            )
    except (LedgerUnavailable, LedgerUnusable, LedgerProblem, OSError):
        return False
    return True


def _open(workspace: Workspace) -> AbstractContextManager[Transaction]:
    address = ledger_address()
    if address is None:
        return open_to_keep(workspace.paths.ledger, workspace.environment.uid)
    with postgresql():
        from fleetform.store.postgres.opening import open_postgres_to_keep
    return open_postgres_to_keep(address, workspace.environment.uid)
