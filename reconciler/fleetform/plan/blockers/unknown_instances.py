"""
Fleets on clouds that have instances which the ledger does not know: no other host is created meanwhile.

The controller refuses it anyway, because an instance may be the host that a lost ledger had. What a look has recorded is
evidence enough to say so in the plan.
"""

from __future__ import annotations

from fleetform.model.existence import UNKNOWN_CURE, unknown_instances_text
from fleetform.model.plan import Change, HeldBy
from fleetform.plan.draft import PlanDraft
from fleetform.plan.hosts import hosts_brought_in

__all__ = ["hold_with_unknown_instances"]


def hold_with_unknown_instances(draft: PlanDraft) -> None:
    """Block each change that creates hosts of such a fleet."""
    found: dict[str, list[str]] = {}
    for one in draft.live.recorded_drift:
        if one.drift.field == "unknown":
            found.setdefault(one.drift.resource.name, []).append(one.drift.part)
    for key in sorted(draft.changes) if found else ():
        if key.kind == "fleet" and key.name in found and _creates(draft, draft.changes[key]):
            detail = unknown_instances_text(key.name, found[key.name])
            cure = f"{UNKNOWN_CURE}; if they are gone, `fleetform drift` records it"
            draft.hold(key, HeldBy.DRIFT, detail, cure)


def _creates(draft: PlanDraft, change: Change) -> bool:
    replaces = any(
        "offers" in step.arguments
        and (step.arguments.get("unfit") or step.arguments.get("exchange"))
        for step in change.steps
    )
    return replaces or bool(hosts_brought_in(draft, change, bought=True))
