"""Runs every check over one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetform.checker import (
    adoption,
    data,
    dependencies,
    destruction,
    execution,
    integrity,
    order,
    overrides,
    places,
    preconditions,
    references,
    renames,
    scope,
    steps,
)
from fleetform.checker.context import Reading
from fleetform.checker.invariant import Violation
from fleetform.model.live import Live
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope
from fleetform.spec.desired import Desired

CHECKS: tuple[Callable[[Reading], Iterator[Violation]], ...] = (
    scope.check_place_right,
    scope.check_recovering_unchanged,
    scope.check_recovering_told,
    scope.check_changes_single,
    scope.check_held_not_done,
    scope.check_nothing_forgotten,
    scope.check_left_apart,
    scope.check_scope_kept,
    scope.check_nothing_beside,
    scope.check_exchanges_asked,
    overrides.check_overrides_told,
    overrides.check_overrides_kept,
    overrides.check_windows_kept,
    overrides.check_owners_kept,
    renames.check_moves_declared,
    renames.check_moved_kept,
    adoption.check_let_go_kept,
    adoption.check_found_asked_for,
    adoption.check_returns_own,
    scope.check_broken_untouched,
    scope.check_unread_kept,
    destruction.check_protected_kept,
    destruction.check_destruction_declared,
    destruction.check_destruction_permitted,
    destruction.check_budget_held,
    integrity.check_stake_told,
    data.check_policy_obeyed,
    data.check_snapshot_beside,
    data.check_loss_seen,
    order.check_removal_ordered,
    order.check_successor_waits,
    execution.check_finished_not_rerun,
    execution.check_one_execution,
    execution.check_running_unchanged,
    references.check_referred_to_kept,
    dependencies.check_begins_on_something,
    dependencies.check_begins_on_declared,
    places.check_places_free,
    references.check_used_kept,
    steps.check_keys_unique,
    steps.check_needs_exist,
    steps.check_acyclic,
    steps.check_fit_action,
    steps.check_documents_declared,
    preconditions.check_rows_pinned,
    preconditions.check_work_pinned,
    preconditions.check_unattached_pinned,
    preconditions.check_rules_pinned,
    preconditions.check_ledger_pinned,
    integrity.check_rules_applied_last,
    integrity.check_digest_right,
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
    reading = Reading(plan, desired, live, permissions, scope)
    return tuple(violation for one in CHECKS for violation in one(reading))
