"""What a plan costs an hour, in dollars: before and after, of a change and of the whole."""

from __future__ import annotations

from fleetform.model import figures
from fleetform.model.plan import Change, Plan

__all__ = ["cost_text", "total_cost_text"]


def cost_text(change: Change, *, ceiling: bool = False) -> str:
    """
    Write `$2.40/h → $3.60/h`; empty where no price is known, or nothing changes of it.

    Args:
        change: Of a fleet.
        ceiling: It is not carried out yet, so what it costs is not known, only what at most.
    """
    before, after = change.cost_before, change.cost_after
    if before is None and after is None:
        return ""
    if ceiling and after is not None:
        return f"up to {figures.dollars(after)}/h"
    return "" if before == after else f"{_side(before)} → {_side(after)}"


def total_cost_text(plan: Plan) -> str:
    """The same of all changes together; what has no price is not in it, and so it is said."""
    priced = [change for change in plan.changes if change.key.kind == "fleet"]
    before = sum(change.cost_before or 0 for change in priced)
    after = sum(change.cost_after or 0 for change in priced)
    if before == after:
        return ""
    unknown = sum(change.cost_before is None and change.cost_after is None for change in priced)
    rest = f", and {figures.counted(unknown, 'fleet')} without a price" if unknown else ""
    return f"Cost: {_side(before)} → {_side(after)}{rest}."


def _side(micros: int | None) -> str:
    return "no price" if micros is None else f"{figures.dollars(micros)}/h"
