"""
What hosts cost an hour, before a change and after: in micro-dollars, where a price is known.

Own hosts cost what their fleet says (`price`), hosts of a cloud what their offers say. Before an offer is chosen, up to `max_price`
each is what may become of it. A fleet without a price has no cost: nothing is guessed, and none is not the same
as nothing. If its hosts follow demand, it also has what all of them would cost. A cloud may refuse the first offer, so fleets on
clouds also have what the dearest of their offers would cost, and of each sum how many hosts of unknown price it leaves out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.instance import CLOUDS, Instance, InstanceState
from fleetform.model.plan import Action, Change
from fleetform.model.rollout import MAX_UNAVAILABLE, SURGE
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.fleet import was_made
from fleetform.plan.offers import asked_offers
from fleetform.spec.checks.hosts import provider_of
from fleetform.spec.desired import Declared

__all__ = ["add_costs", "cloud_costs", "hourly_cost"]

_GONE = frozenset({Action.DELETE, Action.FORGET})


def add_costs(draft: PlanDraft) -> None:
    """Give each change of a fleet what it costs before and after, held ones too."""
    for key, change in draft.changes.items():
        if key.kind == "fleet":
            draft.changes[key] = _priced(draft, change)
    for key, held in draft.held.items():
        if key.kind == "fleet":
            draft.held[key] = replace(held, change=_priced(draft, held.change))


def cloud_costs(draft: PlanDraft) -> dict[str, dict[str, Any]]:
    """
    Return what changes of fleets on clouds cost an hour, blocked ones too.

    Returns:
        By fleet, the fields of an `HourlyCost` for `before`, `after`, `during`: with the hosts that a rollout creates before others
        leave, `most`: with all hosts that demand may bring in, and `limit`: the same with the dearest offers. A side that has no hosts of a
        cloud is absent, and so are `during` without such a rollout and `most` of a fixed number of hosts.
    """
    held = (one.change for one in draft.held.values())
    found = {}
    for change in (*draft.changes.values(), *held):
        if change.key.kind == "fleet" and (sides := _cloud_hosts(draft, change)):
            costs = {side: HourlyCost.of(hosts)._asdict() for side, hosts in sides.items()}
            found[change.key.name] = costs
    return dict(sorted(found.items()))


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
    hosts = _cloud_hosts(draft, change)
    before, after = _before(draft, change, hosts), _after(draft, change, hosts)
    if before is None and after is None:
        return change
    # Beside a known price, a side where nothing stands costs nothing.
    if not change.uid and after is not None:
        before = 0
    if change.action in _GONE and before is not None:
        after = 0
    most = None if after is None else _most(draft, change, hosts)
    return replace(change, cost_before=before, cost_after=after, cost_max=most)


_Hosts = Mapping[str, Sequence[Mapping[str, Any]]]
"""Endpoints of hosts of clouds on the sides of `cloud_costs`."""


def _cloud_hosts(draft: PlanDraft, change: Change) -> _Hosts:
    found: dict[str, Sequence[Mapping[str, Any]]] = {}
    name = change.moved_from or change.key.name
    row = draft.live.resources.get(change.key._replace(name=name))
    if row is not None and change.uid and row.document and provider_of(row.parsed) in CLOUDS:
        found["before"] = [one.endpoint for one in _bought(draft, change)]
    if change.action in _GONE:
        return {**found, "after": ()} if found else found
    declared, making = _declared(draft, change), _making(change)
    if declared is None or not making or provider_of(declared.document) not in CLOUDS:
        return found
    arguments = making[-1]
    numbers = [one["number"] for one in arguments["instances"]]
    kept = _kept(draft, change, arguments)
    if "offers" not in arguments and not kept.keys() >= set(numbers):
        return found  # It is blocked: there is no offer.
    if not change.uid or (row is not None and not was_made(row)):
        found["before"] = [one.endpoint for one in _bought(draft, change)]
    new, dearest = _new(draft, change, arguments), _dearest(arguments)
    found["after"] = [kept.get(one, new) for one in numbers]
    surging = _surging(draft, change, declared.document, numbers, kept)
    if surging:
        found["during"] = _peak(found, surging, new)
    if not _follows_demand(declared.document):
        limit = {**found, "after": [kept.get(one, dearest) for one in numbers]}
        return {**found, "limit": _peak(limit, surging, dearest) if surging else limit["after"]}
    rest = arguments["scaling"]["max"] - len(kept)
    found["most"] = [*kept.values(), *[new] * rest]
    # A host that leaves without jobs may come again by another offer.
    found["limit"] = [_dearer(one, dearest) for one in (*kept.values(), *[dearest] * rest)]
    return found


def _surging(
    draft: PlanDraft,
    change: Change,
    document: Mapping[str, Any],
    numbers: Sequence[int],
    kept: Mapping[int, Any],
) -> Sequence[Mapping[str, Any]]:
    """Return endpoints of hosts that exist at once with the hosts that replace them, as many as `update` lets it be."""
    update = document.get("update") or {}
    if update.get("strategy") != "surge":
        return ()
    there = _bought(draft, change)
    replaced = [one.endpoint for one in there if one.number in numbers and one.number not in kept]
    early = sum(one.number >= SURGE for one in there)
    return replaced[: max(0, update.get("max_unavailable", MAX_UNAVAILABLE) - early)]


def _peak(
    sides: _Hosts, surging: Sequence[Mapping[str, Any]], new: Mapping[str, Any]
) -> Sequence[Mapping[str, Any]]:
    """Return the hosts of a rollout when they cost most: as it begins, or as the last hosts leave."""
    before = sides.get("before", ())
    added = max(0, len(sides["after"]) - len(before))
    begin = [*before, *[new] * (len(surging) + added)]
    end = [*sides["after"], *surging]
    return max(begin, end, key=HourlyCost.of)


def _follows_demand(document: Mapping[str, Any]) -> bool:
    limits = document.get("nodes") or {}
    return bool(limits) and limits.get("max") != limits.get("min")


def _dearest(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dearest offer of a step; empty: the price of one is unknown."""
    dearest: Mapping[str, Any] = {"price_micros": 0}
    for one in arguments.get("offers", ()):
        dearest = _dearer(dearest, one)
    return dearest


def _dearer(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the offer that costs more; empty: one of the prices is unknown."""
    prices = [offer.get("price_micros") for offer in (one, other)]
    return {} if None in prices else {"price_micros": max(int(price or 0) for price in prices)}


def _before(draft: PlanDraft, change: Change, hosts: _Hosts) -> int | None:
    if "before" in hosts:
        return _known(hosts["before"])
    name = change.moved_from or change.key.name
    row = draft.live.resources.get(change.key._replace(name=name))
    if row is None or not change.uid or not row.document:
        return None
    return hourly_cost(row.parsed)


def _after(draft: PlanDraft, change: Change, hosts: _Hosts) -> int | None:
    declared = _declared(draft, change)
    if declared is None:
        return None
    if "after" in hosts:
        return _known(hosts["after"])
    is_bought = provider_of(declared.document) in CLOUDS
    return None if _making(change) and is_bought else hourly_cost(declared.document)


def _most(draft: PlanDraft, change: Change, hosts: _Hosts) -> int | None:
    """Return what all hosts cost that demand may bring in; None: the number is fixed or has no limit, or the price is unknown."""
    declared = _declared(draft, change)
    most = None if declared is None else (declared.document.get("nodes") or {}).get("max")
    if declared is None or most is None or not _follows_demand(declared.document):
        return None
    if "most" in hosts:
        return _known(hosts["most"])
    price = declared.document.get("price", declared.document.get("max_price"))
    return None if price is None else int(price) * int(most)


def _bought(draft: PlanDraft, change: Change) -> list[Instance]:
    """Return the instances of a fleet that its cloud has created and that exist."""
    fleet = change.moved_from or change.key.name
    # A look that is not recorded yet has found these.
    ended = {uid for step in change.steps for uid in step.arguments.get("ended", ())}
    return [
        one
        for one in draft.live.instances
        if one.is_bought
        and one.fleet == fleet
        and one.is_created
        and not one.has_ended
        and one.ended_at_ms is None
        and one.uid not in ended
    ]


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
    there = _bought(draft, change)
    keeps, template = arguments.get("keeps", ()), arguments.get("template")
    replaced = arguments.get("exchange", ())
    return {
        # Beside a host that stays, one that came early for it leaves.
        one.number % SURGE: one.endpoint
        for one in sorted(there, key=lambda one: -one.number)
        if one.state is not InstanceState.TERMINATING
        and one.name not in replaced
        and (one.uid in keeps or one.template_digest in {"", template})
    }


def _known(endpoints: Sequence[Mapping[str, Any]]) -> int | None:
    """Return what instances of a cloud cost an hour; None: the price of one is unknown."""
    cost = HourlyCost.of(endpoints)
    return None if cost.unknown_hosts else cost.micros
