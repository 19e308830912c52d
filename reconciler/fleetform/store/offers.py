"""
Offers of fleets on clouds: by which one each instance is asked for, and which ones were refused.

Written before a cloud is asked, so that the next controller knows by which offer an instance may exist, and which offers it
need not try.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fleetform.lifecycle.offers import asked_again, must_be_released, next_offer, refused
from fleetform.model.offers import (
    NoOffer,
    Refusal,
    RefusedOffer,
    TriedOffer,
    identity_of,
    in_order_of_asking,
    lacks_offer,
    offer_text,
)
from fleetform.model.scaling import places_with_offers
from fleetform.spec.desired import ResourceKey
from fleetform.store.database import Transaction, to_json

if TYPE_CHECKING:
    from fleetform.model.plan import Step
    from fleetform.model.ports import Ids
    from fleetform.store.statements import Statements

__all__ = [
    "drop_offers",
    "keep_offers",
    "read_offers",
    "refuse_offers",
    "rename_offers",
    "retry_offers",
    "take_offers",
]


def keep_offers(transaction: Transaction, step: Step) -> None:
    """
    Keep the offers of a fleet's step, and what is known of those that the fleet had before.

    Instances for which no offer was left are asked for again.
    """
    fleet = step.resource.name
    offers = step.arguments.get("offers", ())
    if not offers:
        return
    before = {identity_of(one.terms): one for one in read_offers(transaction, fleet)}
    drop_offers(transaction, fleet)
    known = [before.get(identity_of(terms), TriedOffer(fleet, terms)) for terms in offers]
    transaction.many(
        "INSERT INTO offers (fleet, position, terms, refused_at_ms, problem) VALUES (?, ?, ?, ?, ?)",
        (
            (fleet, position, to_json(terms), one.refused_at_ms, one.problem)
            for position, (terms, one) in enumerate(zip(offers, known, strict=True))
        ),
    )
    declared: Mapping[str, Any] = next(
        (one["endpoint"] for one in places_with_offers(step.arguments)), {}
    )
    for uid, text in _endpoints(transaction, fleet):
        _write_endpoint(transaction, uid, text, asked_again(json.loads(text), declared))


def drop_offers(transaction: Transaction, fleet: str) -> None:
    """Delete the offers of a fleet."""
    transaction.execute("DELETE FROM offers WHERE fleet = ?", (fleet,))


def rename_offers(transaction: Transaction, fleets: Iterable[tuple[str, str]]) -> None:
    """Give fleets' offers to their new names; `fleets` are pairs of an old and a new name."""
    transaction.many(
        "UPDATE offers SET fleet = ? WHERE fleet = ?", ((new, old) for old, new in fleets)
    )


def read_offers(connection: Statements | Transaction, fleet: str) -> tuple[TriedOffer, ...]:
    """Read the offers of a fleet in the order in which they are tried."""
    rows = connection.execute(
        "SELECT terms, refused_at_ms, problem FROM offers WHERE fleet = ? ORDER BY position",
        (fleet,),
    ).fetchall()
    return tuple(TriedOffer(fleet, json.loads(terms), at_ms, why) for terms, at_ms, why in rows)


def retry_offers(
    transaction: Transaction, fleet: str, *, who: str, now_ms: int
) -> tuple[TriedOffer, ...]:
    """See `model.cloud_ledger.CloudLedger.retry_offers`."""
    offers = read_offers(transaction, fleet)
    refused = tuple(one for one in offers if one.is_refused(now_ms))
    transaction.execute(
        "UPDATE offers SET refused_at_ms = NULL, problem = '' WHERE fleet = ?", (fleet,)
    )
    is_waiting = False
    for uid, text in _endpoints(transaction, fleet):
        endpoint = json.loads(text)
        if lacks_offer(endpoint):
            is_waiting = True
            # It says that no offer is left.
            transaction.execute("UPDATE instances SET message = '' WHERE uid = ?", (uid,))
        _write_endpoint(transaction, uid, text, asked_again(endpoint, endpoint))
    if refused or is_waiting:
        names = ", ".join(offer_text(one.terms) for one in refused or offers)
        transaction.log(
            "offer.retried",
            now_ms,
            f"{who} has {names} asked for again",
            ResourceKey("fleet", fleet),
        )
    return refused


def take_offers(
    transaction: Transaction, uids: Sequence[str], *, now_ms: int
) -> dict[str, Mapping[str, Any] | NoOffer]:
    """See `model.cloud_ledger.CloudLedger.take_offers`."""
    offers: dict[str, tuple[TriedOffer, ...]] = {}
    found: dict[str, Mapping[str, Any] | NoOffer] = {}
    for uid in dict.fromkeys(uids):
        row = _row_of(transaction, uid, without="terminating")
        if row is None:
            continue
        fleet, text = row
        if fleet not in offers:
            offers[fleet] = read_offers(transaction, fleet)
        endpoint, none = next_offer(uid, json.loads(text), offers[fleet], now_ms=now_ms)
        _write_endpoint(transaction, uid, text, endpoint)
        found[uid] = none or endpoint
    return found


def refuse_offers(
    transaction: Transaction, refusals: Sequence[Refusal], *, ids: Ids, now_ms: int
) -> tuple[RefusedOffer, ...]:
    """See `model.cloud_ledger.CloudLedger.refuse_offers`."""
    noted: list[RefusedOffer] = []
    for one in refusals:
        row = _row_of(transaction, one.instance_uid)
        if row is None:
            continue
        fleet, text = row
        before = json.loads(text)
        endpoint = refused(before, one.terms, exists=one.exists)
        if endpoint is None:
            continue
        _write_endpoint(transaction, one.instance_uid, text, endpoint)
        if one.problem:
            noted += _note(transaction, fleet, one, now_ms)
        if must_be_released(before) and not one.exists:
            transaction.execute(
                "UPDATE instances SET uid = ? WHERE uid = ?", (ids.uid(), one.instance_uid)
            )
    return tuple(noted)


def _note(
    transaction: Transaction, fleet: str, refusal: Refusal, now_ms: int
) -> Iterator[RefusedOffer]:
    """Write down that an offer was refused, and yield it; once for all instances that were asked for by it."""
    for position, offer in enumerate(read_offers(transaction, fleet)):
        if identity_of(offer.terms) != identity_of(refusal.terms) or offer.is_refused(now_ms):
            continue
        transaction.execute(
            "UPDATE offers SET refused_at_ms = ?, problem = ? WHERE fleet = ? AND position = ?",
            (now_ms, refusal.problem, fleet, position),
        )
        following = in_order_of_asking(read_offers(transaction, fleet), now_ms)[0]
        refused_offer = RefusedOffer(
            offer._replace(refused_at_ms=now_ms, problem=refusal.problem),
            {} if following.is_refused(now_ms) else following.terms,
        )
        transaction.log("offer.refused", now_ms, str(refused_offer), ResourceKey("fleet", fleet))
        yield refused_offer


def _endpoints(transaction: Transaction, fleet: str) -> list[tuple[str, str]]:
    """Read the endpoints of the hosts of a fleet, as JSON, by uid."""
    return transaction.execute(
        "SELECT uid, endpoint FROM instances WHERE fleet = ? AND state <> 'terminated'"
        " AND endpoint <> ''",
        (fleet,),
    ).fetchall()


def _row_of(
    transaction: Transaction, uid: str, *, without: str = "terminated"
) -> tuple[str, str] | None:
    row = transaction.one(
        "SELECT fleet, endpoint FROM instances WHERE uid = ? AND state NOT IN ('terminated', ?)"
        " AND endpoint <> ''",
        (uid, without),
    )
    return None if row is None else (row[0], row[1])


def _write_endpoint(
    transaction: Transaction, uid: str, before: str, endpoint: Mapping[str, Any]
) -> None:
    after = to_json(endpoint)
    if after != before:
        transaction.execute(
            "UPDATE instances SET endpoint = ?, generation = generation + 1 WHERE uid = ?",
            (after, uid),
        )
