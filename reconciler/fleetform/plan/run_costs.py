"""
What the runs that a plan submits may cost: the price of their hosts for as long as they may run.

An upper bound for people, and no part of what is decided. It is only given where it holds: a run can start on fleets of clouds alone, it has
`max_duration`, and every price is known. A run may share its host and end earlier, so it costs less as a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleetform.model.instance import CLOUDS
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft
from fleetform.plan.offers import asked_offers
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.desired import ResourceKey
from fleetform.spec.names import split_element

__all__ = ["run_costs"]

_HOUR_SECONDS = 3600


def run_costs(draft: PlanDraft) -> dict[str, dict[str, Any]]:
    """
    Return, by run, sweep or array, `runs` and `micros`: how many are submitted, and micro-dollars for one attempt of all.

    Where they differ, `elements` has the micro-dollars of each. One of which a bound is not known has no entry.
    """
    prices: dict[str, int | None] = {}
    found: dict[str, dict[str, int]] = {}
    unknown = set()
    for change in draft.changes.values():
        for step in change.steps:
            if step.verb != Verb.RUN_SUBMIT or step.resource not in draft.desired.resources:
                continue
            document = draft.desired.resources[step.resource].document
            parent = split_element(step.resource.name)[0]
            micros = _micros(draft, document, prices)
            if micros is None:
                unknown.add(parent)
                continue
            found.setdefault(parent, {})[step.resource.name] = micros
    return {name: _sums(found[name]) for name in sorted(found) if name not in unknown}


def _sums(micros: dict[str, int]) -> dict[str, Any]:
    sums = {"runs": len(micros), "micros": sum(micros.values())}
    return sums if len(set(micros.values())) == 1 else {**sums, "elements": micros}


def _micros(
    draft: PlanDraft, document: Mapping[str, Any], prices: dict[str, int | None]
) -> int | None:
    seconds = document.get("max_duration")
    fleets = document.get("fleets") or sorted(
        key.name for key in draft.desired.resources if key.kind == "fleet"
    )
    if seconds is None or not fleets:
        return None
    for name in fleets:
        if name not in prices:
            prices[name] = _price(draft, name)
    known = [prices[name] for name in fleets]
    hosts = document.get("nodes", 1)
    if None in known or not isinstance(hosts, int):
        return None
    return max(price or 0 for price in known) * hosts * int(seconds) // _HOUR_SECONDS


def _price(draft: PlanDraft, name: str) -> int | None:
    """Return the highest price an hour of a host that the fleet has or gets; None: unknown, or not of a cloud."""
    fleet = draft.desired.resources.get(ResourceKey("fleet", name))
    if fleet is None or provider_of(fleet.document) not in CLOUDS:
        return None
    there = [one.endpoint.get("price_micros") for one in draft.live.instances if one.fleet == name]
    new = [one.terms.get("price_micros") for one in asked_offers(draft, name)[:1]]
    prices = [*there, *new]
    return None if not prices or None in prices else max(int(price or 0) for price in prices)
