"""
How much one plan may destroy.

Counted a kind, over what is destructive: runs that are over and runs that never began go
without being counted. Up to the limit the first by key go, so that repeated plans get there.
"""

from __future__ import annotations

from collections import Counter

from fleetform.model.plan import HeldBy
from fleetform.plan.proposal import Sheet
from fleetform.spec.desired import ResourceKey


def hold_beyond_budget(sheet: Sheet) -> None:
    # Somebody who asks for the removal of everything has said how much.
    if sheet.permissions.destroy:
        return
    doomed: dict[str, list[ResourceKey]] = {}
    for key in sorted(key for key, change in sheet.changes.items() if change.destructive):
        doomed.setdefault(key.kind, []).append(key)
    if not doomed:
        return
    totals = Counter(key.kind for key in sheet.present)
    limits = {kind: _limit(sheet, totals[kind]) for kind in doomed}
    beyond = {kind: len(keys) for kind, keys in doomed.items() if len(keys) > limits[kind]}
    # One number releases all: the flag is asked for once, not once a kind.
    needed = max(beyond.values(), default=0)
    for kind, keys in doomed.items():
        for key in keys[limits[kind] :]:
            sheet.hold(
                key,
                HeldBy.BUDGET,
                f"the plan would destroy {len(keys)} of {totals[kind]} {kind}s,"
                f" and {limits[kind]} at most are allowed",
                f"needs --allow-deletes {needed}",
            )


def _limit(sheet: Sheet, total: int) -> int:
    rules = sheet.rules
    allowed = sheet.permissions.allow_deletes
    by_rule = max(total * rules.delete_percent // 100, rules.delete_count)
    return by_rule if allowed is None else max(by_rule, allowed)
