"""
What hosts cost an hour, before a change and after: in micro-dollars, where a price is known.

Own hosts cost what their fleet says (`price`), hosts of a cloud what their offers say. Before an offer is chosen, up to `max_price`
each is what may become of it. A fleet without a price has no cost: nothing is guessed, and none is not the same
as nothing. If its hosts follow demand, it also has what all of them would cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetform.model.instance import CLOUDS, Instance, InstanceState
from fleetform.model.plan import Action, Change
from fleetform.plan.draft import PlanDraft
from fleetform.plan.offers import asked_offers
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.desired import Declared

__all__ = ["add_costs", "hourly_cost"]

_GONE = frozenset({Action.DELETE, Action.FORGET})


def add_costs(draft: PlanDraft) -> None:
    """Give each change of a fleet what it costs before and after, held ones too."""
    for key, change in draft.changes.items():
        if key.kind == "fleet":
            draft.changes[key] = _priced(draft, change)
    for key, held in draft.held.items():
        if key.kind == "fleet":
            draft.held[key] = replace(held, change=_priced(draft, held.change))


def hourly_cost(document: Mapping[str, Any]) -> int | None:
    """Micro-dollars an hour of a canonical fleet's hosts, as many as it wants; None: no price."""
    price = document.get("price", document.get("max_price"))
    count = _hosts_wanted(document)
    return None if price is None or count is None else int(price) * count


def _hosts_wanted(document: Mapping[str, Any]) -> int | None:
    named = document.get("ssh_config", {}).get("hosts")
    if named is not None:
        return len(named)
    nodes = document.get("nodes")
    if nodes is None:
        return 1
    target = nodes.get("target")
    wanted: int | None = nodes.get("min") if target is None else target
    return wanted


def _priced(draft: PlanDraft, change: Change) -> Change:
    before = _before(draft, change)
    after = _after(draft, change)
    if before is None and after is None:
        return change
    # Beside a known price, a side where nothing stands costs nothing.
    if not change.uid and after is not None:
        before = 0
    if change.action in _GONE and before is not None:
        after = 0
    most = None if after is None else _most(draft, change)
    return replace(change, cost_before=before, cost_after=after, cost_max=most)


def _before(draft: PlanDraft, change: Change) -> int | None:
    name = change.moved_from or change.key.name
    row = draft.live.resources.get(change.key._replace(name=name))
    if row is None or not change.uid or not row.document:
        return None
    if provider_of(row.parsed) in CLOUDS:
        return _sum_of_prices([one.endpoint for one in _bought(draft, name)])
    return hourly_cost(row.parsed)


def _bought(draft: PlanDraft, fleet: str) -> list[Instance]:
    """Return the instances of a fleet that its cloud has created and that exist."""
    return [
        one
        for one in draft.live.instances
        if one.is_bought and one.fleet == fleet and one.is_created and not one.has_ended
    ]


def _after(draft: PlanDraft, change: Change) -> int | None:
    declared = _declared(draft, change)
    if declared is None:
        return None
    making = _making(change)
    if making and provider_of(declared.document) in CLOUDS:
        kept, new = _kept(draft, change, making[-1]), _new(draft, change, making[-1])
        return _sum_of_prices([kept.get(one["number"], new) for one in making[-1]["instances"]])
    return hourly_cost(declared.document)


def _most(draft: PlanDraft, change: Change) -> int | None:
    """Return what all hosts cost that demand may bring in; None: the number is fixed or has no limit, or the price is unknown."""
    declared = _declared(draft, change)
    limits = {} if declared is None else declared.document.get("nodes") or {}
    most = limits.get("max")
    if declared is None or most is None or most == limits.get("min"):
        return None
    making = _making(change)
    if not making or provider_of(declared.document) not in CLOUDS:
        price = declared.document.get("price", declared.document.get("max_price"))
        return None if price is None else int(price) * int(most)
    kept = list(_kept(draft, change, making[-1]).values())
    new = _new(draft, change, making[-1])
    return _sum_of_prices([*kept, *[new] * (most - len(kept))])


def _new(draft: PlanDraft, change: Change, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the offer that is asked for first; empty for a blocked fleet without any."""
    if "offers" not in arguments:
        return {}
    return asked_offers(draft, change.key.name)[0].terms


def _declared(draft: PlanDraft, change: Change) -> Declared | None:
    """Return what a fleet will be; None: it goes."""
    if change.action in _GONE:
        return None
    declared = draft.desired.resources.get(change.key)
    beyond = draft.desired.beyond.get(change.key)
    return beyond.declared if declared is None and beyond is not None else declared


def _making(change: Change) -> list[Mapping[str, Any]]:
    return [step.arguments for step in change.steps if "instances" in step.arguments]


def _kept(
    draft: PlanDraft, change: Change, arguments: Mapping[str, Any]
) -> dict[int, Mapping[str, Any]]:
    """Return the endpoints of the instances that a step leaves as they were bought, by their places."""
    there = _bought(draft, change.moved_from or change.key.name)
    keeps, template = arguments.get("keeps", ()), arguments.get("template")
    return {
        one.number: one.endpoint
        for one in there
        if one.state is not InstanceState.TERMINATING
        and (one.uid in keeps or one.template_digest in {"", template})
    }


def _sum_of_prices(endpoints: Sequence[Mapping[str, Any]]) -> int | None:
    """Sum up what instances of a cloud cost an hour; None: the price of one is unknown."""
    prices = [one.get("price_micros") for one in endpoints]
    return None if None in prices else sum(int(one or 0) for one in prices)
