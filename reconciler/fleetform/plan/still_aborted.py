"""
Aborted runs that stay so although a plan runs again, or removes, what they had waited for.

A run that was aborted is over: what it depends on may succeed later, and it does not start by itself.
"""

from __future__ import annotations

import json

from fleetform.model.aborted import DEPENDENCY
from fleetform.model.live import Live
from fleetform.model.plan import Action, Plan
from fleetform.model.rows import restless_rows
from fleetform.model.run_state import RunState
from fleetform.plan.draft import LEAVING

__all__ = ["still_aborted"]


def still_aborted(plan: Plan, live: Live) -> tuple[str, ...]:
    """Name those that depend on a run that this plan submits or removes, directly or along a chain."""
    reached: set[str] = set()
    for change in plan.changes:
        if change.key.kind != "run":
            continue
        if change.action in LEAVING:
            # Without the element that failed, the rest of its array may be fine.
            reached.add(change.parent)
        elif change.action is not Action.CREATE and any(
            step.verb == "run.submit" for step in change.steps
        ):
            reached |= {change.key.name, change.parent}
    reached.discard("")
    if not reached:
        return ()
    rows = restless_rows(live.resources)
    left = {
        row.key.name: (row.parent, _waited_for(row.document))
        for one in plan.settled
        if one.state == RunState.ABORTED
        and (row := rows.get(one.key)) is not None
        and row.run is not None
        and row.run.cause == DEPENDENCY
    }
    found: set[str] = set()
    while more := {
        name for name, (_, inputs) in left.items() if name not in found and inputs & reached
    }:
        found |= more
        reached |= more | {left[name][0] for name in more} - {""}
    return tuple(sorted(found))


def _waited_for(document: str) -> frozenset[str]:
    wanted = json.loads(document).get("depends_on", {})
    return frozenset(str(one["run"]) for one in wanted.get("runs", ()))
