"""Why a result is kept and would come out otherwise by now: the same words in plan, `ps` and `why`."""

from __future__ import annotations

from collections.abc import Sequence

from fleetform.model.plan import Plan, StaleResult

__all__ = ["stale_results", "stale_text"]


def stale_results(plan: Plan) -> tuple[StaleResult, ...]:
    """Those of which the plan's changes do not speak anyway."""
    changed = {change.key for change in plan.changes}
    return tuple(one for one in plan.stale if one.key not in changed)


def stale_text(inputs: Sequence[str], *, inherited: bool) -> str:
    """Say why a result would come out otherwise by now; empty for one that would not."""
    parts = []
    if inputs:
        more = f" and {len(inputs) - 2} more" if len(inputs) > 2 else ""
        verb = "was" if len(inputs) == 1 else "were"
        parts.append(f"stale input: {', '.join(inputs[:2])}{more} {verb} redone since")
    if inherited:
        parts.append("stale: what it inherits changed since")
    return "; ".join(parts)
