"""
By which offers a plan creates hosts of clouds, in the order in which they are asked for at its time.

The step of a fleet has the offers in the order of the fleet. Those that its cloud refused lately are passed over for some minutes: that is in the
annex of the plan, because it passes with time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from fleetform.model import figures
from fleetform.model.instance import CLOUDS
from fleetform.model.offers import offer_text_of_each, priced_offer_text, terms_of, with_offer
from fleetform.model.plan import Change, Plan
from fleetform.model.verbs import Verb
from fleetform.views.lines import printable
from fleetform.views.moments import moment

__all__ = [
    "asked_offers",
    "asks_for_hosts",
    "host_by_demand",
    "hosts_created",
    "hosts_created_text",
    "hosts_replaced",
    "new_hosts_facts",
    "next_offers_text",
    "offer_warning",
    "refused_offers_text",
    "refused_until",
    "replacement_text",
    "scaling_of",
    "scaling_text",
]

_HOSTS_SHOWN = 10
"""Names in a line; the rest is counted."""

_OFFERS_SHOWN = 2
"""Offers in a line; the rest is counted."""


def asked_offers(plan: Plan, change: Change) -> Sequence[Mapping[str, Any]]:
    """
    Return the offers by which the change of a fleet creates hosts, in the order in which they are asked for.

    One that was refused lately has `refused_at_ms`, `problem` and `asked_again_at_ms`.
    """
    refused: Sequence[Mapping[str, Any]] = plan.annex.get("offers", {}).get(change.key.name, ())
    if change.key.kind == "fleet" and refused:
        return refused
    return next((found for one in change.steps if (found := one.arguments.get("offers"))), ())


def hosts_created(plan: Plan, change: Change) -> tuple[str, ...]:
    """Name the hosts that the change of a fleet buys from a cloud."""
    if change.key.kind != "fleet":
        return ()
    return tuple(plan.annex.get("hosts_created", {}).get(change.key.name, ()))


def hosts_replaced(change: Change) -> Mapping[str, str]:
    """Return the hosts of a fleet on a cloud that another template or `--replace` replaces, with the reason."""
    found: dict[str, str] = {}
    for step in change.steps:
        if "offers" in step.arguments:
            found |= dict.fromkeys(
                step.arguments.get("exchange", ()), "`--replace` requests a new one"
            )
        found |= step.arguments.get("unfit", {})
    return found


def replacement_text(plan: Plan, change: Change) -> str:
    """
    Write `g5.xlarge in us-east-1, $1.01/h → g5.2xlarge in us-east-1, $1.22/h; image ami-1 → ami-2`: what hosts are that are replaced, and will be.

    What stays the same is there once.
    """
    earlier = plan.annex.get("hosts_replaced", {}).get(change.key.name, {}).values()
    offer = next(iter(asked_offers(plan, change)), None)
    if not earlier or offer is None:
        return ""
    new = priced_offer_text(offer)
    old = dict.fromkeys(priced_offer_text(one) for one in earlier if "instance_type" in one)
    hosts = new if list(old) == [new] else f"{', '.join(old)} → {new}"
    return printable(f"{hosts}; image {_images_text(change, offer, earlier)}")


def _images_text(
    change: Change, offer: Mapping[str, Any], earlier: Collection[Mapping[str, Any]]
) -> str:
    """Write `ami-1`, `ami-1 → ami-2`, or `ami-1 → newest of /aws/service/…` where an image is looked up again."""
    document: Mapping[str, Any] = next(
        (one.arguments["document"] for one in change.steps if "document" in one.arguments), {}
    )
    declared = document.get("aws", {}).get("image")
    # Here: a catalogue is read for it.
    from fleetform.providers.offers.aws_images import image_parameter

    default = image_parameter(offer["instance_type"])
    is_looked_up = any(one.path in {"aws.image", "aws.image_renewal"} for one in change.fields) or (
        declared is None
        and any(image_parameter(one.get("instance_type", "")) != default for one in earlier)
    )
    old = ", ".join(dict.fromkeys(one.get("image", "unknown") for one in earlier))
    new = declared or default
    if not is_looked_up or new == old:
        return old
    return f"{old} → {f'newest of {new}' if new.startswith('/') else new}"


def hosts_created_text(plan: Plan, change: Change) -> str:
    """Write `gpus-0, gpus-1 (g5.xlarge in us-east-1a, $1.006/h each)`; empty for a change that buys none."""
    new = hosts_created(plan, change)
    endpoints = [
        place["endpoint"]
        for step in change.steps
        for place in step.arguments.get("instances", ())
        if place["name"] in new
    ]
    if not endpoints:
        return ""
    names = figures.first_of([printable(one) for one in new], _HOSTS_SHOWN)
    later = f", not before {free}" if (free := refused_until(plan, change)) else ""
    return f"{names} ({_offer_text(plan, change, endpoints[0], is_many=len(new) > 1)}){later}"


def refused_until(plan: Plan, change: Change) -> str:
    """Return when the first offer is asked for again whose fleet has all of them refused now; empty: one may be asked for."""
    offers = asked_offers(plan, change)
    if not offers or not all(map(_is_refused, offers)):
        return ""
    return moment(offers[0]["asked_again_at_ms"])


def _offer_text(plan: Plan, change: Change, place: Mapping[str, Any], *, is_many: bool) -> str:
    offer = with_offer(place, terms_of(next(iter(asked_offers(plan, change)), place)))
    return printable((offer_text_of_each if is_many else priced_offer_text)(offer))


def new_hosts_facts(plan: Plan, change: Change) -> Iterator[tuple[str, str]]:
    """Yield what all hosts have that the change of a fleet creates, now or by demand: the account, the image, and when they end themselves."""
    places = [
        *(place for step in change.steps for place in step.arguments.get("instances", ())),
        *([scaling["host"]] if (scaling := scaling_of(change)) else []),
    ]
    endpoint = next(
        (one["endpoint"] for one in places if "orphan_after" in one.get("endpoint", {})), None
    )
    offer = next(iter(asked_offers(plan, change)), None)
    if endpoint is None or offer is None or not asks_for_hosts(plan, change):
        return
    yield "account", printable(endpoint["account"])
    if not hosts_replaced(change):
        yield "image", printable(_image_text(plan, change, endpoint, offer))
    yield "root disk", f"{endpoint['root_gb']}GB each, of unknown price and not in the cost"
    if (orphan := endpoint["orphan_after"]) >= 0:
        after = figures.span(orphan * 1000)
        yield "hosts end themselves", f"after {after} without jobs and without a controller"


def _image_text(
    plan: Plan, change: Change, endpoint: Mapping[str, Any], offer: Mapping[str, Any]
) -> str:
    """Write `ami-1`, the image that the hosts of the fleet have, or else the parameter that has the newest one."""
    # Here: a catalogue is read for it.
    from fleetform.providers.offers.aws_images import image_parameter

    default = image_parameter(offer["instance_type"])
    declared = endpoint.get("image") or default
    pinned = {
        one["image"]
        for one in plan.annex.get("pinned_images", {}).get(change.key.name, ())
        if one["region"] == offer["region"]
        and ("image" in endpoint or image_parameter(one["instance_type"]) == default)
    }
    return pinned.pop() if declared.startswith("/") and len(pinned) == 1 else str(declared)


def scaling_of(change: Change) -> Mapping[str, Any] | None:
    """Return the limits of a fleet whose hosts follow demand after the change, as its step has them."""
    found = (step.arguments.get("scaling") for step in change.steps)
    return next((one for one in found if one is not None), None)


def host_by_demand(change: Change) -> Mapping[str, Any] | None:
    """Return the place of the hosts that demand may bring in, if the fleet has none after the change; None: it has, or gets none."""
    has_hosts = any(step.arguments.get("instances") for step in change.steps)
    scaling = None if has_hosts else scaling_of(change)
    if scaling is None or not scaling["max"] or scaling["host"].get("provider") not in CLOUDS:
        return None
    host: Mapping[str, Any] = scaling["host"]
    return host


def scaling_text(plan: Plan, change: Change) -> str:
    """Write `0 to 3 hosts by demand (…); hosts leave after 5m00s without jobs, also the 2 that exist`; empty for a fixed number."""
    scaling = scaling_of(change)
    if scaling is None or "instance_type" not in scaling["host"]["endpoint"]:
        return ""
    least, most, idle = scaling["min"], scaling["max"], scaling["idle_seconds"]
    end = (
        "stay without jobs" if idle < 0 else f"leave after {figures.span(idle * 1000)} without jobs"
    )
    host = _offer_text(plan, change, scaling["host"]["endpoint"], is_many=True)
    which = f"hosts beyond {least}" if least else "hosts"
    spare = (
        sum(
            len(one.arguments["instances"]) for one in change.steps if one.verb == Verb.FLEET_UPDATE
        )
        - least
    )
    # A number that was fixed kept them.
    more = (
        f", also the {spare} that exist{'s' if spare == 1 else ''}"
        if spare > 0 and idle >= 0 and _was_fixed(change)
        else ""
    )
    return f"{least} to {figures.counted(most, 'host')} by demand ({host}); {which} {end}{more}"


def _was_fixed(change: Change) -> bool:
    """Tell whether the number of hosts did not follow demand before the change."""
    return any(
        one.path == "nodes"
        and (not one.before_set or one.before.get("min") == one.before.get("max"))
        for one in change.fields
    )


def asks_for_hosts(plan: Plan, change: Change) -> bool:
    """Tell whether the change of a fleet has its cloud create hosts, now or by demand."""
    return bool(hosts_created(plan, change) or hosts_replaced(change) or scaling_of(change))


def next_offers_text(plan: Plan, change: Change) -> str:
    """
    Write `g5.2xlarge in us-east-1, $1.22/h; g5.4xlarge in us-east-1, $1.63/h; 3 more up to g5.48xlarge in us-east-1, $16.29/h`.

    It is what is asked for if the cloud refuses the first offer. The dearest is always named, and so is the last of unknown price.
    """
    if not asks_for_hosts(plan, change):
        return ""
    offers = [one for one in asked_offers(plan, change)[1:] if not _is_refused(one)]
    shown = [priced_offer_text(one) for one in offers[:_OFFERS_SHOWN]]
    rest = offers[_OFFERS_SHOWN:]
    known = sorted(
        (one for one in rest if "price_micros" in one), key=lambda one: int(one["price_micros"])
    )
    for part in (known, [one for one in rest if "price_micros" not in one]):
        if part:
            more = f"{len(part)} more up to " if len(part) > 1 else ""
            shown.append(f"{more}{priced_offer_text(part[-1])}")
    return printable("; ".join(shown))


def refused_offers_text(plan: Plan, change: Change) -> str:
    """
    Write `g5.xlarge in us-east-1, 3m00s ago, not asked for before 2026-11-21T10:26:30Z: no capacity`.

    Empty if no offer was refused lately, or the change creates no host now or later.
    """
    if not asks_for_hosts(plan, change):
        return ""
    offers = asked_offers(plan, change)
    refused = [one for one in offers if _is_refused(one)]
    if not refused:
        return ""
    # Here: few plans name offers.
    from fleetform.views.offers import refused_text

    told = [refused_text(one, plan.annex["planned_at_ms"]) for one in refused]
    more = f" and {len(told) - _OFFERS_SHOWN} more" if len(told) > _OFFERS_SHOWN else ""
    named = printable("; ".join(told[:_OFFERS_SHOWN]) + more)
    sooner = f"`fleetform fleet retry {change.key.name}` asks sooner"
    if len(refused) < len(offers):
        return f"{named}; {sooner}"
    return (
        f"all offers, so no host is created before {refused_until(plan, change)}: {named}; {sooner}"
    )


def offer_warning(plan: Plan, change: Change) -> str:
    """Say what keeps the fleet from asking for spot instances first, although `spot_policy: auto` allows them; empty: nothing."""
    found: Mapping[str, str] = plan.annex.get("offer_warnings", {})
    return found.get(change.key.name, "") if asks_for_hosts(plan, change) else ""


def _is_refused(offer: Mapping[str, Any]) -> bool:
    return "refused_at_ms" in offer
