"""
What a plan costs, in dollars: an hour before and after it, and what the runs that it submits may cost.

A fleet whose hosts follow demand has no one price: it says what its hosts cost now, and what all that demand may bring in would.
"""

from __future__ import annotations

from fleetform.model import figures
from fleetform.model.plan import Change, Plan
from fleetform.model.verbs import Verb
from fleetform.model.volume import DISK
from fleetform.spec.names import split_element
from fleetform.views.lines import printable
from fleetform.views.plan.groups import Group

__all__ = ["cost_text", "disk_cost_text", "run_cost_text", "total_cost_texts"]


def cost_text(change: Change, *, ceiling: bool = False) -> str:
    """
    Write `$2.40/h → $3.60/h`, or `$0.00/h now, up to $4.80/h by demand`; empty where no price is known, or nothing changes of it.

    Args:
        change: Of a fleet.
        ceiling: It is not carried out yet, so what it costs is not known, only what at most.
    """
    before, after, most = change.cost_before, change.cost_after, change.cost_max
    if before is None and after is None:
        return ""
    if ceiling and after is not None:
        return f"up to {_side(after if most is None else most)}"
    return _sides(before, after, most)


def run_cost_text(plan: Plan, group: Group) -> str:
    """
    Write `at most $12.15 on g5.2xlarge in us-east-1 (3 attempts of $4.05), if each needs its max_duration`.

    Why there is no limit where there is none; empty for a run that no cloud may have to do with.
    """
    if group.first.key.kind != "run":
        return ""
    name = split_element(group.first.key.name)[0]
    found = plan.annex.get("run_costs", {}).get(name)
    if found is None:
        return ""
    if "unbounded" in found:
        return printable(f"without limit: {found['unbounded']}")
    own = found.get("elements", {})
    micros = max(own.get(one.key.name, found["micros"] // found["runs"]) for one in group.changes)
    attempts, window = found.get("attempts", 1), found.get("within_seconds", 0)
    host = f" on {found['dearest']}" if "dearest" in found else ""
    each = " each" if group.is_many else ""
    tried = (
        f" ({attempts} attempts of {figures.dollars(micros // attempts)})" if attempts > 1 else ""
    )
    if window:
        tried = f" (attempts begin within {figures.span(window * 1000)})"
    needs = "each" if tried or each else "the run"
    return printable(
        f"at most {figures.dollars(micros)}{each}{host}{tried}, if {needs} needs its max_duration"
    )


def disk_cost_text(change: Change) -> str:
    """Write `unknown for 500GB` where a change creates or grows a disk of a cloud: no catalogue has its price."""
    grows = any(one.path == "size" for one in change.fields)
    for step in change.steps:
        disk = step.arguments.get(DISK)
        if disk and not disk["registered"] and (step.verb == Verb.VOLUME_MAKE or grows):
            return f"unknown for {disk['place']['size_gb']}GB"
    return ""


def total_cost_texts(plan: Plan) -> list[str]:
    """Sum up the fleets, and then the runs where there are several; what has no price is not in the sum, and so it is said."""
    return [text for text in (_fleets_text(plan), _runs_text(plan)) if text]


def _fleets_text(plan: Plan) -> str:
    priced = [change for change in plan.changes if change.key.kind == "fleet"]
    before = sum(change.cost_before or 0 for change in priced)
    after = sum(change.cost_after or 0 for change in priced)
    most = sum(
        change.cost_after or 0 if one is None else one
        for change in priced
        for one in [change.cost_max]
    )
    text = _sides(before, after, most if most > after else None)
    if not text:
        return ""
    unknown = sum(change.cost_before is None and change.cost_after is None for change in priced)
    rest = f", and {figures.counted(unknown, 'fleet')} without a price" if unknown else ""
    return f"Cost: {text}{rest}."


def _runs_text(plan: Plan) -> str:
    """Write `Cost of the runs: at most $12.07, if each of 6 needs its max_duration, and 1 run without limit.`."""
    found = plan.annex.get("run_costs", {}).values()
    limited = [one for one in found if "unbounded" not in one]
    runs = sum(one["runs"] for one in limited)
    endless = sum(one["runs"] for one in found) - runs
    if runs + endless < 2:
        return ""
    rest = f"{figures.counted(endless, 'run')} without limit" if endless else ""
    if not limited:
        return f"Cost of the runs: {rest}."
    most = figures.dollars(sum(one["micros"] for one in limited))
    return (
        f"Cost of the runs: at most {most}, if each of {runs} needs its max_duration"
        f"{f', and {rest}' if rest else ''}."
    )


def _sides(before: int | None, after: int | None, most: int | None) -> str:
    by_demand = "" if most is None else f", up to {_side(most)} by demand"
    if before == after:
        return f"{_side(after)} now{by_demand}" if by_demand else ""
    return f"{_side(before)} → {_side(after)}{by_demand}"


def _side(micros: int | None) -> str:
    return "no price" if micros is None else f"{figures.dollars(micros)}/h"
