"""Runs every check over one plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from fleetform.checker import names, preconditions, safety, scope, structure
from fleetform.checker.context import Invariant, PlanContext, Violation
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope

if TYPE_CHECKING:
    from fleetform.model.live import Live
    from fleetform.spec.desired import Desired

CHECKS: Mapping[Invariant, Callable[[PlanContext], Iterator[str]]] = {
    Invariant.RIGHT_PLACE: scope.check_place_right,
    Invariant.RECOVERING_CHANGES_NOTHING: scope.check_recovering_unchanged,
    Invariant.RECOVERING_STATED: scope.check_recovering_stated,
    Invariant.ONE_CHANGE_A_RESOURCE: scope.check_changes_single,
    Invariant.HELD_IS_NOT_DONE: scope.check_held_not_done,
    Invariant.NOTHING_FORGOTTEN: scope.check_nothing_forgotten,
    Invariant.LEFT_IS_LEFT: scope.check_left_apart,
    Invariant.SCOPE_KEPT: scope.check_scope_kept,
    Invariant.ONLY_SCOPE: scope.check_only_scope,
    Invariant.EXCHANGED_IS_ASKED_FOR: scope.check_exchanges_asked,
    Invariant.OVERRIDES_LISTED: safety.check_overrides_listed,
    Invariant.OVERRIDES_KEPT: safety.check_overrides_kept,
    Invariant.WINDOWS_KEPT: safety.check_windows_kept,
    Invariant.OWNERS_KEPT: safety.check_owners_kept,
    Invariant.MOVED_IS_THE_SAME: names.check_moves_declared,
    Invariant.MOVED_IS_KEPT: names.check_moved_kept,
    Invariant.RELEASED_IS_KEPT: safety.check_released_kept,
    Invariant.FOUND_IS_ASKED_FOR: safety.check_found_asked_for,
    Invariant.RETURNS_ITS_OWN: safety.check_returns_own,
    Invariant.BROKEN_STAYS: scope.check_broken_untouched,
    Invariant.UNREAD_REMOVES_NOTHING: scope.check_unread_kept,
    Invariant.PROTECTED_STAYS: safety.check_protected_kept,
    Invariant.DESTRUCTION_DECLARED: safety.check_destruction_declared,
    Invariant.DESTRUCTION_PERMITTED: safety.check_destruction_permitted,
    Invariant.WITHIN_BUDGET: safety.check_budget_held,
    Invariant.IMPACT_STATED: scope.check_impact_stated,
    Invariant.POLICY_OBEYED: safety.check_policy_obeyed,
    Invariant.SNAPSHOT_ADJACENT: safety.check_snapshot_adjacent,
    Invariant.LOSS_SEEN: safety.check_loss_seen,
    Invariant.REMOVAL_ORDERED: structure.check_removal_ordered,
    Invariant.SUCCESSOR_WAITS: structure.check_successor_waits,
    Invariant.FINISHED_STAYS_FINISHED: structure.check_finished_not_rerun,
    Invariant.ONE_EXECUTION_AT_A_TIME: structure.check_one_execution,
    Invariant.RUNNING_KEEPS_ITS_EXECUTION: structure.check_running_unchanged,
    Invariant.REFERRED_TO_STAYS: names.check_referred_to_kept,
    Invariant.BEGINS_ON_SOMETHING: structure.check_begins_on_something,
    Invariant.BEGINS_ON_DECLARED: structure.check_begins_on_declared,
    Invariant.PLACE_IS_FREE: safety.check_places_free,
    Invariant.USED_STAYS: names.check_used_kept,
    Invariant.STEPS_NAMED_ONCE: structure.check_keys_unique,
    Invariant.STEPS_NEEDS_EXIST: structure.check_needs_exist,
    Invariant.STEPS_ACYCLIC: structure.check_acyclic,
    Invariant.STEPS_FIT_ACTION: structure.check_fit_action,
    Invariant.DOCUMENTS_AS_DECLARED: structure.check_documents_declared,
    Invariant.ROWS_PINNED: preconditions.check_rows_pinned,
    Invariant.WORK_PINNED: preconditions.check_work_pinned,
    Invariant.UNATTACHED_PINNED: preconditions.check_unattached_pinned,
    Invariant.RULES_PINNED: preconditions.check_rules_pinned,
    Invariant.LEDGER_PINNED: preconditions.check_ledger_pinned,
    Invariant.RULES_APPLIED_LAST: scope.check_rules_applied_last,
    Invariant.DIGEST_RIGHT: scope.check_digest_right,
}
"""One check for each invariant; it yields where and how a plan breaks the invariant."""


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
    return tuple(
        Violation(invariant, detail)
        for invariant, check_one in CHECKS.items()
        for detail in check_one(context)
    )
