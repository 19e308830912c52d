"""
What a plan costs, in dollars: an hour before and after it, and what the runs that it submits may cost.

A fleet whose hosts follow demand has no one price: it says what its hosts cost now, and what all that demand may bring in would.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from fleetform.model import figures
from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.offers import offer_text_of_each, priced_offer_text
from fleetform.model.plan import Change, Plan
from fleetform.model.verbs import Verb
from fleetform.model.volume import DISK
from fleetform.spec.names import split_element
from fleetform.views.lines import printable
from fleetform.views.plan.groups import Group

__all__ = [
    "FleetCosts",
    "cost_text",
    "disk_cost_text",
    "fleet_costs",
    "run_cost_text",
    "total_cost_texts",
]


class FleetCosts(NamedTuple):
    """What the change of a fleet costs an hour; None: there is no price, or of the others no such side."""

    before: HourlyCost | None
    after: HourlyCost | None
    during: HourlyCost | None
    most: HourlyCost | None
    limit: HourlyCost | None


def fleet_costs(plan: Plan, change: Change) -> FleetCosts:
    """Return the sums of `plan.costs.cloud_costs`, and of own hosts what the change has."""
    clouds = plan.annex.get("fleet_costs", {}).get(change.key.name, {})
    own = {"before": change.cost_before, "after": change.cost_after, "most": change.cost_max}
    if change.key.kind != "fleet" or not clouds:
        sides = {name: HourlyCost(micros) for name, micros in own.items() if micros is not None}
    else:
        sides = {name: HourlyCost(**one) for name, one in clouds.items()}
        if change.cost_before is not None:
            # A fleet of own hosts that moves to a cloud.
            sides.setdefault("before", HourlyCost(change.cost_before))
    return FleetCosts(*(sides.get(name) for name in FleetCosts._fields))


def cost_text(plan: Plan, change: Change, *, ceiling: bool = False) -> str:
    """
    Write `$2.40/h → $3.60/h, up to $7.20/h with the next offers`, `$0.00/h now, up to $4.80/h by demand`, or `$1.20/h now, $2.40/h during the rollout`.

    Empty where no price is known, or nothing changes of it.

    Args:
        plan: Has the sums of fleets on clouds in its annex.
        change: Of a fleet.
        ceiling: It is not carried out yet, so what it costs is not known, only what at most.
    """
    costs = fleet_costs(plan, change)
    if costs.before is None and costs.after is None:
        return ""
    highest = costs.limit or costs.most or costs.during or costs.after
    if ceiling and highest is not None:
        return f"up to {highest}"
    return _sides(costs)


def run_cost_text(plan: Plan, group: Group) -> str:
    """
    Write `at most $12.12 on g5.2xlarge in us-east-1 (3 attempts of $4.04), if each needs its max_duration`.

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
        f" ({attempts} attempts of {figures.unit_price(micros // attempts)})"
        if attempts > 1
        else ""
    )
    if window:
        tried = f" (attempts begin within {figures.span(window * 1000)})"
    needs = "each" if tried or each else "the run"
    return printable(
        f"at most {figures.dollars(micros)}{each}{host}{tried}{_SPOT if 'spot' in found else ''}, if {needs} needs its max_duration"
    )


_SPOT = " at the spot prices of the last refresh"
"""AWS changes them at any time, also for instances that exist."""


def disk_cost_text(change: Change) -> str:
    """Write `unknown for 500GB` where a change creates or grows a disk of a cloud: no catalogue has its price."""
    grows = any(one.path == "size" for one in change.fields)
    for step in change.steps:
        disk = step.arguments.get(DISK)
        if disk and not disk["registered"] and (step.verb == Verb.VOLUME_MAKE or grows):
            return f"unknown for {disk['place']['size_gb']}GB"
    return ""


def total_cost_texts(plan: Plan) -> list[str]:
    """Sum up the fleets, what waiting runs bring in, and then the runs where there are several; what has no price is not in the sum, and so it is said."""
    return [text for text in (_fleets_text(plan), *_demand_texts(plan), _runs_text(plan)) if text]


def _demand_texts(plan: Plan) -> Iterator[str]:
    """Yield `Cost of fleet gpus by demand: $0.00/h → $1.01/h, with the host that it will create for 1 waiting run (g5.xlarge in us-east-1, $1.01/h).`."""
    for fleet, one in sorted(plan.annex.get("forecast", {}).get("demand", {}).items()):
        sides = (HourlyCost(**one[side]) for side in ("before", "after"))
        offer = (offer_text_of_each if one["hosts"] > 1 else priced_offer_text)(one["endpoint"])
        hosts = "the host" if one["hosts"] == 1 else f"{one['hosts']} hosts"
        yield printable(
            f"Cost of fleet {fleet} by demand: {' → '.join(map(str, sides))}, with {hosts} that it will create for"
            f" {figures.counted(one['runs'], 'waiting run')} ({offer})."
        )


def _fleets_text(plan: Plan) -> str:
    fleets = [fleet_costs(plan, one) for one in plan.changes if one.key.kind == "fleet"]
    known = [one for one in fleets if one.before is not None or one.after is not None]
    after = [one.after or HourlyCost() for one in known]
    during = [one.during or side for one, side in zip(known, after, strict=True)]
    most = [one.most or side for one, side in zip(known, during, strict=True)]
    text = _sides(
        FleetCosts(
            _sum(one.before or HourlyCost() for one in known),
            _sum(after),
            _sum(during),
            _sum(most),
            _sum(one.limit or side for one, side in zip(known, most, strict=True)),
        )
    )
    rest, kinds = [], ["fleets"] if text else []
    if text and (unpriced := len(fleets) - len(known)):
        rest.append(f"{figures.counted(unpriced, 'fleet')} without a price")
    if disks := sum(bool(disk_cost_text(one)) for one in plan.changes):
        rest.append(f"{figures.counted(disks, 'volume')} of unknown price")
        kinds.append("volumes")
    sums = ", and ".join(filter(None, (text, " and ".join(rest))))
    return f"Cost of the changed {' and '.join(kinds)}: {sums}." if sums else ""


def _sum(costs: Iterable[HourlyCost]) -> HourlyCost:
    return functools.reduce(HourlyCost.plus, costs, HourlyCost())


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
    spot = _SPOT if any("spot" in one for one in limited) else ""
    needs = f"each of {runs}" if runs > 1 else "the run"
    return (
        f"Cost of the runs: at most {most}{spot}, if {needs} needs its max_duration"
        f"{f', and {rest}' if rest else ''}."
    )


def _sides(costs: FleetCosts) -> str:
    before, after, during, most, limit = costs
    more = []
    if during not in {None, after}:
        more.append(f"{_side(during)} during the rollout")
    if most not in {None, during or after}:
        more.append(f"up to {_side(most)} by demand")
    first = most or during or after
    if limit is not None and first is not None and limit != first:
        is_known = limit.unknown_hosts == first.unknown_hosts
        more.append(f"{f'up to {limit}' if is_known else 'unknown'} with the next offers")
    beyond = "".join(f", {one}" for one in more)
    if before == after:
        return f"{_side(after)} now{beyond}" if beyond else ""
    return f"{_side(before)} → {_side(after)}{beyond}"


def _side(cost: HourlyCost | None) -> str:
    return "no price" if cost is None else str(cost)
