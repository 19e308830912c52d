"""Drift that a plan knows of and does not correct: what looks found, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.drift import expected_and_seen
from fleetform.model.figures import counted
from fleetform.model.plan import HeldBy, Plan, Reason
from fleetform.views.lines import printable
from fleetform.views.moments import age

__all__ = ["SEEN_EARLIER", "count_text", "drift_text", "earlier_drift", "remaining_drift"]

SEEN_EARLIER = "Drift seen earlier; `fleetform plan --refresh` looks again and plans corrections:"


def remaining_drift(plan: Plan) -> list[Mapping[str, Any]]:
    """What differs from what was applied, less the fields that this plan corrects or blocks."""
    handled = {
        (str(change.key), one.path)
        for change in (
            *(one for one in plan.changes if Reason.DRIFTED in one.reasons),
            *(one.change for one in plan.held if one.by is HeldBy.DRIFT),
        )
        for one in change.fields
    }
    return [
        one for one in plan.annex.get("drift", ()) if (one["resource"], one["path"]) not in handled
    ]


def earlier_drift(plan: Plan) -> list[Mapping[str, Any]]:
    """Those of `remaining_drift` that this plan has not looked for itself."""
    looked_ms = plan.annex.get("observed_at_ms")
    return [
        one
        for one in remaining_drift(plan)
        if one.get("seen_at_ms") is not None and one["seen_at_ms"] != looked_ms
    ]


def drift_text(plan: Plan, one: Mapping[str, Any]) -> str:
    """Write `volume data  directory: there (expected) → gone (seen 3m ago)`."""
    kind, _, name = one["resource"].partition("/")
    ago = age(one["seen_at_ms"], plan.annex.get("planned_at_ms", one["seen_at_ms"]))
    what = expected_and_seen(one["path"], one["before"], one["after"], f"{ago} ago")
    return printable(f"{kind} {name}  {what}")


def count_text(plan: Plan) -> str:
    """Write `2 fields differ from what was applied`; empty where no drift remains."""
    count = len(remaining_drift(plan))
    verb = "differs" if count == 1 else "differ"
    return f"{counted(count, 'field')} {verb} from what was applied" if count else ""
