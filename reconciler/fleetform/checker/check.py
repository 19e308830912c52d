"""Runs every check over one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetform.checker import names, preconditions, safety, scope, structure
from fleetform.checker.context import PlanContext, Violation
from fleetform.model.live import Live
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope
from fleetform.spec.desired import Desired

CHECKS: tuple[Callable[[PlanContext], Iterator[Violation]], ...] = (
    scope.check_place_right,
    scope.check_recovering_unchanged,
    scope.check_recovering_stated,
    scope.check_changes_single,
    scope.check_held_not_done,
    scope.check_nothing_forgotten,
    scope.check_left_apart,
    scope.check_scope_kept,
    scope.check_only_scope,
    scope.check_exchanges_asked,
    safety.check_overrides_listed,
    safety.check_overrides_kept,
    safety.check_windows_kept,
    safety.check_owners_kept,
    names.check_moves_declared,
    names.check_moved_kept,
    safety.check_released_kept,
    safety.check_found_asked_for,
    safety.check_returns_own,
    scope.check_broken_untouched,
    scope.check_unread_kept,
    safety.check_protected_kept,
    safety.check_destruction_declared,
    safety.check_destruction_permitted,
    safety.check_budget_held,
    scope.check_impact_stated,
    safety.check_policy_obeyed,
    safety.check_snapshot_adjacent,
    safety.check_loss_seen,
    structure.check_removal_ordered,
    structure.check_successor_waits,
    structure.check_finished_not_rerun,
    structure.check_one_execution,
    structure.check_running_unchanged,
    names.check_referred_to_kept,
    structure.check_begins_on_something,
    structure.check_begins_on_declared,
    safety.check_places_free,
    names.check_used_kept,
    structure.check_keys_unique,
    structure.check_needs_exist,
    structure.check_acyclic,
    structure.check_fit_action,
    structure.check_documents_declared,
    preconditions.check_rows_pinned,
    preconditions.check_work_pinned,
    preconditions.check_unattached_pinned,
    preconditions.check_rules_pinned,
    preconditions.check_ledger_pinned,
    scope.check_rules_applied_last,
    scope.check_digest_right,
)


def check(
    plan: Plan,
    desired: Desired,
    live: Live,
    permissions: Permissions,
    scope: Scope = WHOLE,
) -> tuple[Violation, ...]:
    """
    Read a plan against what it was made from.

    Returns:
        Everything that is wrong with it, in the order of the checks; empty for a plan that
        may be carried out. A plan that breaks one rule often breaks several.
    """
    context = PlanContext(plan, desired, live, permissions, scope)
    return tuple(violation for one in CHECKS for violation in one(context))
