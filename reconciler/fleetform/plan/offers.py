"""
What the new hosts of a fleet on a cloud are: the cheapest offer that satisfies what it declares, and those after it.

The order is part of the step, so apply chooses nothing: it takes the next offer when the cloud refuses one, and passes over those that
were refused lately. Which ones those are passes with time, so it is in no step: notes and costs of the plan say it. Hosts
that exist keep the offer that they were bought by.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleetform.model.instance import CLOUDS
from fleetform.model.live import FleetOffers
from fleetform.model.offers import OFFERS_MAX, TriedOffer, identity_of, in_order_of_asking
from fleetform.model.plan import Change, HeldBy, Step
from fleetform.model.scaling import places_with_offers
from fleetform.model.verbs import Verb
from fleetform.plan.draft import PlanDraft
from fleetform.plan.kinds.fleet import propose_asking_again
from fleetform.spec.desired import ResourceKey
from fleetform.spec.ignore_changes import overlook, overlooks
from fleetform.spec.names import region_of

if TYPE_CHECKING:
    from fleetform.providers.offers.catalogue import Offer

__all__ = ["ask_again", "asked_offers", "choose_offers", "possible_offers"]


def ask_again(draft: PlanDraft) -> None:
    """Propose to ask again for hosts that a cloud has refused, where their fleet changes in nothing else."""
    refused = {ResourceKey("fleet", one.fleet) for one in draft.live.instances if one.is_refused}
    for key in sorted(refused & draft.wanted.keys() & draft.present.keys() - draft.changes.keys()):
        declared, row = draft.wanted[key], draft.present[key]
        if draft.is_left_alone(key, key.parent):
            continue
        if overlooks(declared):
            declared = overlook(declared, row.document, row.digest, row.own_digest)
        draft.add(propose_asking_again(declared, row))


def choose_offers(draft: PlanDraft) -> None:
    """Put the offer into each place of a cloud; block a fleet for which there is none."""
    for key in sorted(draft.changes):
        change = draft.changes[key]
        if key.kind != "fleet" or not any(_places(step) for step in change.steps):
            continue
        found = draft.live.offers[key.name]
        offers = _in_zones(found.offers, draft.wanted[key].document)
        if offers:
            draft.changes[key] = _with_offers(change, offers)
        elif found.offers:
            draft.hold(
                key, HeldBy.DEPENDENCY, _NO_ZONE, "add a zone of another region, or remove them"
            )
        else:
            draft.hold(key, HeldBy.DEPENDENCY, found.problem, found.advice)


def asked_offers(draft: PlanDraft, fleet: str) -> list[TriedOffer]:
    """Return the offers for the next hosts of a declared fleet on a cloud, in the order in which they are asked for now."""
    key = ResourceKey("fleet", fleet)
    change = draft.changes.get(key)
    # The ledger forgets the offers of a fleet with all its hosts.
    is_renewed = change is not None and any(one.verb == Verb.FLEET_REMOVE for one in change.steps)
    earlier = {
        identity_of(one.terms): one
        for one in (() if is_renewed else draft.live.tried_offers.get(fleet, ()))
    }
    found = draft.live.offers.get(fleet, FleetOffers())
    tried = [
        earlier.get(identity_of(terms), TriedOffer(fleet, terms))._replace(terms=terms)
        for _, terms in _in_zones(found.offers, draft.desired.resources[key].document)
    ]
    return in_order_of_asking(tried, draft.now_ms)


def possible_offers(draft: PlanDraft, fleet: str) -> list[Mapping[str, Any]]:
    """Return the offers by which hosts of a fleet on a cloud may be created once the plan is applied; empty: none is known."""
    change = draft.changes.get(ResourceKey("fleet", fleet))
    for step in () if change is None else change.steps:
        if offers := step.arguments.get("offers"):
            return list(offers)
    applied = [one.terms for one in draft.live.tried_offers.get(fleet, ())]
    if applied or ResourceKey("fleet", fleet) not in draft.desired.resources:
        return applied
    # A new fleet that is blocked has none in a step.
    return [one.terms for one in asked_offers(draft, fleet)]


_NO_ZONE = "no offer satisfies it in one of the `availability_zones`"


def _places(step: Step) -> list[dict[str, Any]]:
    return [one for one in places_with_offers(step.arguments) if one.get("provider") in CLOUDS]


def _with_offers(change: Change, offers: Sequence[tuple[Offer, Mapping[str, Any]]]) -> Change:
    steps = tuple(
        replace(step, arguments=_offered(step.arguments, offers)) if _places(step) else step
        for step in change.steps
    )
    return replace(change, steps=steps)


def _offered(
    arguments: Mapping[str, Any], offers: Sequence[tuple[Offer, Mapping[str, Any]]]
) -> dict[str, Any]:
    """Put the first offer into the places of a step and into what demand may bring in, and list all of them."""
    first, terms = offers[0]
    places = [_bought(place, first, terms) for place in arguments["instances"]]
    offered: dict[str, Any] = {
        **arguments,
        "instances": places,
        "offers": [terms for _, terms in offers],
    }
    if "scaling" in arguments:
        scaling = arguments["scaling"]
        offered["scaling"] = {**scaling, "host": _bought(scaling["host"], first, terms)}
    return offered


def _bought(place: Mapping[str, Any], offer: Offer, terms: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **place,
        "endpoint": {**place["endpoint"], **terms},
        # Until the host reports what it has.
        "capacity": {
            "cpu": offer.cpu_count * 1000,
            "memory": offer.memory_bytes,
            "gpus": [
                {
                    "uuid": f"offered-{index}",
                    "name": offer.gpu_name,
                    "memory_bytes": offer.gpu_memory_bytes,
                    "index": index,
                    "vendor": offer.gpu_vendor,
                }
                for index in range(offer.gpu_count)
            ],
        },
    }


def _in_zones(
    offers: Sequence[Offer], document: Mapping[str, Any]
) -> Sequence[tuple[Offer, Mapping[str, Any]]]:
    """Return the offers that a step has, each with its terms."""
    zones = document.get("availability_zones")
    return [(offer, one) for offer in offers for one in _terms(offer, zones)][:OFFERS_MAX]


def _terms(offer: Offer, zones: Sequence[str] | None) -> Iterator[dict[str, Any]]:
    """Write an offer as in `model.offers`, once for each zone of its region that may be used."""
    terms: dict[str, Any] = {"instance_type": offer.instance_type, "region": offer.region}
    if offer.spot:
        terms["spot"] = True
    if offer.price_micros is not None:
        terms["price_micros"] = offer.price_micros
    if zones is None:
        yield terms
    else:
        yield from ({**terms, "zone": one} for one in zones if region_of(one) == offer.region)
