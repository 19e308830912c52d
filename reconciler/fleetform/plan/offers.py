"""
What the new hosts of a fleet on a cloud are: the cheapest offer that satisfies what it declares.

The choice is part of the step, so apply makes none. Hosts that exist keep the offer that they were bought by.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleetform.model.instance import CLOUDS
from fleetform.model.plan import Change, HeldBy, Step
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
    instances = step.arguments.get("instances", ())
    return [place for place in instances if place.get("provider") in CLOUDS]


def _with_offer(change: Change, offer: Offer) -> Change:
    bought: dict[str, Any] = {"instance_type": offer.instance_type}
    if offer.spot:
        bought["spot"] = True
    if offer.price_micros is not None:
        bought["price_micros"] = offer.price_micros
    steps = tuple(
        replace(
            step,
            arguments={
                **step.arguments,
                "instances": [
                    {**place, "endpoint": {**place["endpoint"], **bought}}
                    for place in step.arguments["instances"]
                ],
            },
        )
        if _places(step)
        else step
        for step in change.steps
    )
    return replace(change, steps=steps)
