"""What the tests of holds are made of: plans with every permission, and what stands above them."""

from __future__ import annotations

from fleetform.checker import check
from fleetform.model.live import Live
from fleetform.model.override import Override, OverrideKind
from fleetform.model.plan import HeldBy, Permissions, Plan, Scope
from fleetform.plan.planner import plan as make_plan
from fleetform.spec.desired import Desired, FreezeWindow
from unit.plan.trees import NOW_MS

OPEN = FreezeWindow("holidays", begin=0, end=NOW_MS // 1000 + 3600)
NARROW = FreezeWindow("careful", begin=0, end=NOW_MS // 1000 + 3600, only="destructive")
SHUT = FreezeWindow("long ago", begin=0, end=1)
EVERYTHING = Permissions(allow_destroy=True, allow_restart=True, allow_deletes=10**6)


def held_by(plan: Plan) -> dict[str, HeldBy]:
    return {str(one.change.key): one.by for one in plan.held}


def override(kind: OverrideKind, target: str = "", until_ms: int | None = None) -> Override:
    return Override(1, kind, target, "smoke", "ada@node1", 0, until_ms)


def make(desired: Desired, live: Live, scope: Scope | None = None) -> Plan:
    """A plan with every permission, which the second reader finds nothing in."""
    scope = scope or Scope()
    plan = make_plan(desired, live, permissions=EVERYTHING, scope=scope, now_ms=NOW_MS)
    assert check(plan, desired, live, EVERYTHING, scope) == ()
    return plan
