"""What a plan would come to at once, in a few lines: only where something would not start."""

from __future__ import annotations

from collections.abc import Iterator

from fleetform.model import figures
from fleetform.model.plan import Plan
from fleetform.views.lines import printable

__all__ = ["forecast_lines"]

LIST_MAX = 3


def forecast_lines(plan: Plan) -> tuple[str, ...]:
    """
    Sentences, first the one that sums up; none where everything would start at once.

    That is what people expect, and one line less to read in every plan. Where a run may start on
    hosts that the plan creates and whose size they report only then, nothing is said of waiting.
    """
    found = plan.annex.get("forecast") or {}
    if found.get("unknown", {}).get("total"):
        nothing = {"total": 0, "first": []}
        found = {**found, "waits": nothing, "starts": {**nothing, "total": None}}
    waits, impossible = found.get("waits", {}), found.get("impossible", {})
    if not waits.get("total") and not impossible.get("total"):
        return ()
    return tuple(_lines(found))


def _lines(found: dict[str, dict[str, object]]) -> Iterator[str]:
    starts = found["starts"]["total"]
    lists = (("would wait", found["waits"]), ("would be unschedulable", found["impossible"]))
    for word, part in lists:
        total, first = part["total"], part["first"]
        assert isinstance(total, int)
        assert isinstance(first, list)
        if not total:
            continue
        beside = "" if starts is None else f", and {starts} would start now"
        # Said once: the runs that start are the same below.
        starts = None
        yield f"{figures.counted(total, 'run')} {word}{beside}:"
        for one in first[:LIST_MAX]:
            reasons = one["reasons"]
            more = (
                f" (and {figures.counted(len(reasons) - 1, 'more reason')})" if reasons[1:] else ""
            )
            yield f"  {printable(one['run'])}: {printable(reasons[0]) if reasons else ''}{more}"
        if total > LIST_MAX:
            yield f"  and {total - LIST_MAX} more"
