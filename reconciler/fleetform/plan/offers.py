"""
What the new hosts of a fleet on a cloud are: the cheapest offer that satisfies what it declares.

The choice is part of the step, so apply makes none. Hosts that exist keep the offer that they were bought by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fleetform.model.instance import CLOUDS
from fleetform.model.plan import Change, HeldBy, Step
from fleetform.model.scaling import places_with_offers
from fleetform.plan.draft import PlanDraft
from fleetform.providers.offers.catalogue import Offer

__all__ = ["choose_offers"]


def choose_offers(draft: PlanDraft) -> None:
    """Put the offer into each place of a cloud; block a fleet for which there is none."""
    for key in sorted(draft.changes):
        change = draft.changes[key]
        if key.kind != "fleet" or not any(_places(step) for step in change.steps):
            continue
        found = draft.live.offers[key.name]
        if found.offers:
            draft.changes[key] = _with_offer(change, found.offers[0])
        else:
            draft.hold(key, HeldBy.DEPENDENCY, found.problem, found.advice)


def _places(step: Step) -> list[dict[str, Any]]:
    return [one for one in places_with_offers(step.arguments) if one.get("provider") in CLOUDS]


def _with_offer(change: Change, offer: Offer) -> Change:
    steps = tuple(
        replace(step, arguments=_offered(step.arguments, offer)) if _places(step) else step
        for step in change.steps
    )
    return replace(change, steps=steps)


def _offered(arguments: Mapping[str, Any], offer: Offer) -> dict[str, Any]:
    """Put an offer into the places of a step, and into what is said of hosts that demand may bring in."""
    places = [_bought(place, offer) for place in arguments["instances"]]
    offered: dict[str, Any] = {**arguments, "instances": places}
    if "scaling" in arguments:
        scaling = arguments["scaling"]
        offered["scaling"] = {**scaling, "host": _bought(scaling["host"], offer)}
    return offered


def _bought(place: Mapping[str, Any], offer: Offer) -> dict[str, Any]:
    bought: dict[str, Any] = {"instance_type": offer.instance_type}
    if offer.spot:
        bought["spot"] = True
    if offer.price_micros is not None:
        bought["price_micros"] = offer.price_micros
    return {
        **place,
        "endpoint": {**place["endpoint"], **bought},
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
