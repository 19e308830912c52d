"""
Desired against live, as a plan.

A chain of small passes over one draft: the first propose, the next hold back, the last link
and sum up. None asks the world or the clock; the same inputs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable

from fleetform.model.ledger import LedgerStatus
from fleetform.model.live import Live, present_rows
from fleetform.model.override import holding
from fleetform.model.plan import WHOLE, Permissions, Plan, Scope
from fleetform.model.redaction import Seal, fingerprint
from fleetform.plan.blockers import PASSES
from fleetform.plan.blockers.freeze import recovery_warnings
from fleetform.plan.compare import compare_resources, compare_rules
from fleetform.plan.costs import add_costs
from fleetform.plan.draft import NOTHING_MOVED, PlanDraft
from fleetform.plan.drift import correct_drift
from fleetform.plan.ended_instances import give_up_ended
from fleetform.plan.fitting_hosts import keep_fitting_hosts
from fleetform.plan.hosts import count_hosts, hasten_exchanges
from fleetform.plan.impact import add_stakes
from fleetform.plan.kinds import KINDS
from fleetform.plan.notes import annex_of, cautions
from fleetform.plan.offers import ask_again, choose_offers
from fleetform.plan.order import order_steps
from fleetform.plan.preconditions import predicates_of
from fleetform.plan.reattach import take_back
from fleetform.plan.redaction import seal_changes
from fleetform.plan.renames import add_moves, moved_live, stuck_warnings
from fleetform.plan.scaling import keep_scaled_hosts
from fleetform.plan.scope import defer_the_held, defer_the_rest, failures_in_scope, scope_warnings
from fleetform.plan.serialize import sealed
from fleetform.plan.status import in_progress, settled_failures
from fleetform.plan.volume_hosts import grow_volumes
from fleetform.spec.desired import Desired, Rules, left_alone

__all__ = ["plan"]

_CHAIN: tuple[Callable[[PlanDraft], None], ...] = (
    compare_rules,
    compare_resources,
    # After the comparison: a fleet that changes asks again anyway.
    ask_again,
    # Fleets that change are known: their new hosts get the volumes.
    grow_volumes,
    # After the comparison: what is changed anyway is made anew with that.
    correct_drift,
    give_up_ended,
    # Behind all that proposes: a step that renames goes in front of the others.
    add_moves,
    # Before anything is held: what nobody asked for is not told as held.
    defer_the_rest,
    # Of what is left in the plan; before the holds, which judge what it will be.
    take_back,
    hasten_exchanges,
    # Before the offers: each host has one.
    keep_scaled_hosts,
    # Before the cost and the digest: the offer is a part of what is bought.
    choose_offers,
    # With the offers: a host stays that one of them would create.
    keep_fitting_hosts,
    *PASSES,
    # The passes may have held what is left for another plan anyway.
    defer_the_held,
    # After the holds: a step must not wait for one that is not in the plan.
    order_steps,
    # What is held has a price and a stake too: they are what somebody weighs.
    add_costs,
    add_stakes,
    count_hosts,
    # Last: nothing is put into a change behind it that nobody may see.
    seal_changes,
)


def plan(
    desired: Desired,
    live: Live,
    *,
    permissions: Permissions,
    scope: Scope = WHOLE,
    now_ms: int,
) -> Plan:
    """
    Choose what moves `live` towards `desired`, and say what is held back and why.

    Args:
        desired: The tree. Resources of broken documents may be in it or not: they are left alone.
        live: One reading of the ledger.
        permissions: What is allowed beyond the rules last applied.
        scope: What the plan is made of, and what is done although nothing differs.
        now_ms: Unix milliseconds. For the annex, and for which overrides, freeze windows and refusals of offers hold.

    Returns:
        Changes and held changes by key. Carry them out, plan again, and nothing is left but
        what is held. The digest covers all but the annex.
    """
    assert live.environment_uid in {"", desired.environment.uid}, "another environment's ledger"
    moves = NOTHING_MOVED
    if not permissions.destroy:
        live, moves = moved_live(desired, live)
    draft = _open_sheet(desired, live, permissions, scope, now_ms)
    draft.moves = moves
    for change_pass in _CHAIN:
        change_pass(draft)
    return sealed(
        Plan(
            environment_fingerprint=fingerprint(desired.environment.uid),
            salt=Seal(desired.environment.uid).digest("plan"),
            environment_name=desired.environment.name,
            ledger_id=live.ledger_id,
            epoch=live.epoch,
            changes=tuple(draft.changes[key] for key in sorted(draft.changes)),
            held=tuple(draft.held[key] for key in sorted(draft.held)),
            settled=failures_in_scope(draft, settled_failures(draft)),
            progressing=in_progress(draft),
            predicates=predicates_of(draft),
            rules=draft.rules,
            commit=desired.commit,
            tree_digest=desired.digest,
            annex=annex_of(draft, now_ms),
            warnings=(
                *recovery_warnings(draft),
                *_warnings(draft),
                *cautions(draft),
                *stuck_warnings(draft.moves),
                *scope_warnings(draft),
            ),
            deferred=tuple(draft.deferred[key] for key in sorted(draft.deferred)),
            scope=scope,
            overrides=draft.overrides,
            recovering=live.status is LedgerStatus.RECOVERING,
            destroys=permissions.destroy,
        )
    )


def _open_sheet(
    desired: Desired, live: Live, permissions: Permissions, scope: Scope, now_ms: int
) -> PlanDraft:
    draft = PlanDraft(
        desired,
        live,
        permissions,
        live.rules or Rules(),
        scope,
        now_ms=now_ms,
        overrides=holding(live.overrides, now_ms),
    )
    draft.present = present_rows(live.resources, KINDS)
    if permissions.destroy:
        return draft
    draft.left_alone = left_alone(desired)
    draft.wanted = desired.resources
    if draft.left_alone:
        draft.wanted = {
            key: declared
            for key, declared in desired.resources.items()
            if not draft.is_left_alone(key, declared.parent)
        }
    return draft


def _warnings(draft: PlanDraft) -> tuple[str, ...]:
    if draft.permissions.destroy:
        everything = "`destroy` removes everything, whatever the configuration declares."
        return (everything,) if draft.present else ()
    if draft.wanted or draft.left_alone or draft.desired.unread:
        return ()
    if draft.present:
        return ("The configuration declares nothing, so everything that exists would be removed.",)
    return ("The configuration declares nothing.",)
