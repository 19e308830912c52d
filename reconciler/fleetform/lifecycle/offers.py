"""
By which offer an instance of a cloud is asked for next.

An instance that the cloud may have been asked for stays at its offer until the cloud has answered: it could exist there, and
would be bought twice. All others are asked for by the first offer of their fleet that was not refused lately, which plans show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fleetform.model.offers import (
    GIVEN_UP,
    REFUSED_SINCE,
    NoOffer,
    TriedOffer,
    identity_of,
    in_order_of_asking,
    with_offer,
)
from fleetform.spec.canonical import digest

__all__ = ["asked_again", "created", "must_be_released", "next_offer", "refused"]

_ASKED = "asked"
"""In an endpoint: the cloud may have been asked for the instance by this offer, and has not answered."""

_EXISTS = "refused_and_exists"
"""In an endpoint: the instance was created by this offer, which others of its batch were refused: it must be released first."""

_RETRY = "retry_seconds"
"""In an endpoint: for how long offers are asked for again; negative: without limit; missing: they are not."""

_IN_PLACE = (_RETRY, "proxy_jump", "ssh_from")
"""What a fleet changes in the endpoints of instances that it has."""


def next_offer(
    uid: str, endpoint: Mapping[str, Any], offers: Sequence[TriedOffer], *, now_ms: int
) -> tuple[dict[str, Any], NoOffer | None]:
    """
    Return the endpoint by which an instance is asked for now, and why it is not asked for.

    Args:
        uid: Of the instance.
        endpoint: As it is; it has an offer.
        offers: Of its fleet, in their order; empty: those of an earlier release, which had one.
        now_ms: Unix milliseconds.
    """
    if endpoint.get(_ASKED) or not offers:
        return {**endpoint, _ASKED: True}, None
    first = in_order_of_asking(offers, now_ms)[0]
    if first.is_refused(now_ms) or endpoint.get(GIVEN_UP):
        since_ms = endpoint.get(REFUSED_SINCE, now_ms)
        none = _no_offer(endpoint, offers, since_ms, now_ms)
        given_up = {GIVEN_UP: True} if none.next_ms is None else {}
        return {**endpoint, REFUSED_SINCE: since_ms, **given_up}, none
    # How long it has waited is kept until it is created: a retry has one limit.
    if identity_of(first.terms) == identity_of(endpoint):
        return {**endpoint, _ASKED: True}, None
    moved = with_offer(endpoint, first.terms)
    # The same for all instances of a batch that go to the same offer: they are a batch again.
    before = str(endpoint.get("stack") or uid)
    mark = digest({"stack": before, "offer": list(identity_of(first.terms))})[:12]
    return {**moved, "stack": f"{before[:-12]}{mark}", _ASKED: True}, None


def refused(
    endpoint: Mapping[str, Any], terms: Mapping[str, Any], *, exists: bool
) -> dict[str, Any] | None:
    """Return the endpoint of an instance that was refused by an offer; None: it is not asked for by that one."""
    if identity_of(endpoint) != identity_of(terms) or not endpoint.get(_ASKED):
        return None
    if exists:
        return {**endpoint, _EXISTS: True}
    return _without(endpoint, _ASKED, _EXISTS)


def must_be_released(endpoint: Mapping[str, Any]) -> bool:
    """Tell whether an instance was created although its batch was refused."""
    return bool(endpoint.get(_EXISTS))


def asked_again(endpoint: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """
    Return the endpoint of an instance that an apply asks for again, whatever was refused before.

    `declared` is the endpoint of a new host of its fleet: for how long the instance is asked for, and how it is reached, is
    as declared now.
    """
    now = {name: declared[name] for name in _IN_PLACE if name in declared}
    return {**_without(endpoint, REFUSED_SINCE, GIVEN_UP, *_IN_PLACE), **now}


def created(endpoint: Mapping[str, Any]) -> dict[str, Any]:
    """Return the endpoint of an instance that was created."""
    return _without(endpoint, _ASKED, REFUSED_SINCE, GIVEN_UP)


def _no_offer(
    endpoint: Mapping[str, Any], offers: Sequence[TriedOffer], since_ms: int, now_ms: int
) -> NoOffer:
    told = tuple(one for one in offers if one.refused_at_ms is not None)
    seconds = endpoint.get(_RETRY)
    until_ms = None if seconds is None or seconds < 0 else since_ms + seconds * 1000
    if endpoint.get(GIVEN_UP) or seconds is None or (until_ms is not None and now_ms >= until_ms):
        return NoOffer(told)
    return NoOffer(told, min(one.asked_again_at_ms for one in told), until_ms)


def _without(endpoint: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: endpoint[name] for name in endpoint if name not in names}
