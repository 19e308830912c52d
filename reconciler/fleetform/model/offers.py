"""
The offers by which the instances of a fleet on a cloud are created, in the order in which they are tried.

An offer is a mapping of `TERMS`. The endpoint of an instance has those of the offer that it is created by, so a plan, a
step and a row name an offer in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fleetform.model.figures import dollars, size, unit_price

__all__ = [
    "CHOSEN_ZONE",
    "GIVEN_UP",
    "OFFERS_MAX",
    "REFUSED_MS",
    "REFUSED_SINCE",
    "TERMS",
    "NoOffer",
    "Refusal",
    "RefusedOffer",
    "TriedOffer",
    "gpu_text",
    "identity_of",
    "in_order_of_asking",
    "is_given_up",
    "lacks_offer",
    "offer_facts",
    "offer_text",
    "offer_text_of_each",
    "price_terms",
    "priced_offer_text",
    "terms_of",
    "with_offer",
]

TERMS = ("instance_type", "region", "zone", "spot", "price_micros")
"""`zone` is missing where the cloud chooses it, `spot` on demand, `price_micros` where it is unknown."""

REFUSED_MS = 600_000
"""
How long a fleet does not ask for an offer again that a cloud has refused.

Capacity comes back when others give theirs back, which takes minutes, and each call counts against the limits of the account.
"""

OFFERS_MAX = 16
"""Offers that a step has: a refusal takes up to 30 s, so all of them are tried before the first may be asked again."""

REFUSED_SINCE = "refused_since_ms"
"""In the endpoint of an instance: since when its cloud has refused all offers; kept until the instance is created."""

CHOSEN_ZONE = "chosen_zone"
"""
In the endpoint of an instance: the zone where it is. Its offer has none where the cloud chooses it, and keeps none: the
stack of its batch would have another program.
"""

GIVEN_UP = "is_refused"
"""In the endpoint of an instance: its fleet does not retry, or no longer, so only a person has it asked for again."""


class TriedOffer(NamedTuple):
    """
    An offer of a fleet, and what became of the last call for it.

    `refused_at_ms` is when the cloud refused it, and `problem` why; None: it has not, or has created hosts since.
    """

    fleet: str
    terms: Mapping[str, Any]
    refused_at_ms: int | None = None
    problem: str = ""

    @property
    def asked_again_at_ms(self) -> int:
        """From when on it may be asked for; 0: at any time."""
        return 0 if self.refused_at_ms is None else self.refused_at_ms + REFUSED_MS

    def is_refused(self, now_ms: int) -> bool:
        """Tell whether it must not be asked for now."""
        return now_ms < self.asked_again_at_ms


class Refusal(NamedTuple):
    """
    A cloud refused to create an instance by an offer.

    `exists`: it was created and must be released, because others of its batch were refused. Without a `problem` no offer was.
    """

    instance_uid: str
    terms: Mapping[str, Any]
    problem: str
    exists: bool = False


class RefusedOffer(NamedTuple):
    """A cloud has refused an offer just now. `next_terms` is the offer that is asked for in its place; empty: none is left."""

    offer: TriedOffer
    next_terms: Mapping[str, Any]

    def __str__(self) -> str:
        """Write `g5.xlarge in us-east-1 was refused: no capacity; next is g5.2xlarge in us-east-1, $1.22/h instead of $1.01/h`."""
        said = f"{offer_text(self.offer.terms)} was refused: {self.offer.problem}"
        if not self.next_terms:
            return said
        prices = [_price_text(one) for one in (self.offer.terms, self.next_terms)]
        rest = f" instead of {prices[0]}" if prices[0] != prices[1] else ""
        return f"{said}; next is {priced_offer_text(self.next_terms)}{rest}"


class NoOffer(NamedTuple):
    """
    No offer may be asked for now: the cloud has refused each of `refused`.

    `next_ms`: when the first one is asked for again; None: the fleet does not retry, or no longer. `until_ms`: when the
    fleet gives up; None: never, or it has.
    """

    refused: tuple[TriedOffer, ...]
    next_ms: int | None = None
    until_ms: int | None = None


def lacks_offer(endpoint: Mapping[str, Any]) -> bool:
    """Tell whether the cloud of an instance has refused all offers since the instance was last created."""
    return REFUSED_SINCE in endpoint


def is_given_up(endpoint: Mapping[str, Any]) -> bool:
    """Tell whether no controller asks for an instance any more, because its cloud has refused all offers."""
    return bool(endpoint.get(GIVEN_UP))


def identity_of(terms: Mapping[str, Any]) -> tuple[str, str, str, bool]:
    """Return what tells an offer from others; its price may change."""
    return (
        terms.get("instance_type", ""),
        terms.get("region", ""),
        terms.get("zone", ""),
        bool(terms.get("spot")),
    )


def in_order_of_asking(offers: Sequence[TriedOffer], now_ms: int) -> list[TriedOffer]:
    """
    Return the offers of a fleet in the order in which they are asked for now.

    Those that were refused lately are the last ones, and of them the one that may be asked for soonest is the first.
    """
    return sorted(offers, key=lambda one: one.asked_again_at_ms if one.is_refused(now_ms) else 0)


def price_terms(instance: Mapping[str, Any], offers: Sequence[TriedOffer]) -> dict[str, int]:
    """Return the price of an instance as terms: that of the offer by which its fleet would create the same now; empty: unknown."""
    for one in offers:
        zone = one.terms.get("zone", instance.get("zone"))
        if identity_of({**one.terms, "zone": zone}) == identity_of(instance):
            price = one.terms.get("price_micros")
            return {} if price is None else {"price_micros": price}
    return {}


def gpu_text(name: str, memory_bytes: int, count: int) -> str:
    """Write `A100:80GB:8`; empty for a type without GPUs."""
    return f"{name}:{size(memory_bytes)}:{count}" if count else ""


def offer_text(terms: Mapping[str, Any]) -> str:
    """Write `g5.xlarge in us-east-1a (spot)`; of an instance whose place is not known the type alone."""
    place = terms.get("zone") or terms.get("region")
    where = f" in {place}" if place else ""
    return f"{terms['instance_type']}{where}{' (spot)' if terms.get('spot') else ''}"


def priced_offer_text(terms: Mapping[str, Any]) -> str:
    """Write `g5.xlarge in us-east-1a (spot), $0.44/h`."""
    return f"{offer_text(terms)}, {_price_text(terms)}"


def offer_text_of_each(terms: Mapping[str, Any]) -> str:
    """Write `g5.xlarge in us-east-1a, $1.006/h each`: readers multiply it, so the price has all its digits."""
    price = terms.get("price_micros")
    return (
        priced_offer_text(terms)
        if price is None
        else f"{offer_text(terms)}, {unit_price(price)}/h each"
    )


def _price_text(terms: Mapping[str, Any]) -> str:
    price = terms.get("price_micros")
    return "unknown price" if price is None else f"{dollars(price)}/h"


def with_offer(endpoint: Mapping[str, Any], terms: Mapping[str, Any]) -> dict[str, Any]:
    """Return the endpoint of an instance with this offer in place of its own."""
    rest = {name: endpoint[name] for name in endpoint if name not in TERMS}
    return {**rest, **terms}


def offer_facts(offer: TriedOffer, now_ms: int) -> dict[str, Any]:
    """Return the terms of an offer and, if it was refused lately, when, why, and from when on it is asked for again."""
    if not offer.is_refused(now_ms):
        return dict(offer.terms)
    return {
        **offer.terms,
        "refused_at_ms": offer.refused_at_ms,
        "problem": offer.problem,
        "asked_again_at_ms": offer.asked_again_at_ms,
    }


def terms_of(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the offer that the endpoint of an instance has."""
    return {name: endpoint[name] for name in TERMS if name in endpoint}
