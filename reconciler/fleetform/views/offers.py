"""Offers of clouds as people read them, and what became of those that were tried."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any

from fleetform.model.figures import counted, dollars, size, span
from fleetform.model.offers import (
    REFUSED_MS,
    NoOffer,
    TriedOffer,
    gpu_text,
    identity_of,
    offer_text,
)
from fleetform.providers.offers.catalogue import Offer
from fleetform.views.moments import age, moment
from fleetform.views.table import Cell, Column, Table, make_table, row_of


@dataclass(frozen=True, slots=True)
class OfferRow(Offer):
    """An offer of a catalogue; `refused` has what the cloud of a fleet has refused of it lately: of several zones, some or all."""

    refused: tuple[TriedOfferRow, ...] = ()


def offer_rows(
    offers: Iterable[Offer], tried: Sequence[TriedOffer] = (), *, now_ms: int = 0
) -> tuple[OfferRow, ...]:
    """Make the rows; `tried` are the offers of a fleet, as the ledger has them."""
    refused: dict[tuple[str, str, bool], list[TriedOffer]] = {}
    for one in tried:
        if one.is_refused(now_ms):
            kind, region, _zone, spot = identity_of(one.terms)
            refused.setdefault((kind, region, spot), []).append(one)
    return tuple(
        row_of(
            OfferRow,
            one,
            refused=tried_offer_rows(refused.get((one.instance_type, one.region, one.spot), ())),
        )
        for one in offers
    )


def refused_texts(rows: Iterable[OfferRow], now_ms: int) -> tuple[str, ...]:
    """Say which of the offers a fleet does not ask for now, as `refused_text` does."""
    return tuple(refused_text(asdict(one), now_ms) for row in rows for one in row.refused)


def offers_table(rows: Sequence[OfferRow]) -> Table:
    columns: tuple[Column[OfferRow], ...] = (
        Column("BACKEND", lambda row: row.backend),
        Column("REGION", lambda row: row.region),
        Column("TYPE", lambda row: row.instance_type),
        Column("CPU", lambda row: str(row.cpu_count), right=True),
        Column("ARCH", lambda row: row.arch),
        Column("MEMORY", lambda row: size(row.memory_bytes), right=True),
        Column(
            "GPU",
            lambda row: gpu_text(row.gpu_name, row.gpu_memory_bytes, row.gpu_count),
            optional=True,
        ),
        Column("KIND", lambda row: "spot" if row.spot else "on-demand"),
        Column("$/H", _price, right=True),
    )
    return make_table(columns, rows)


def _price(row: OfferRow | TriedOfferRow) -> Cell | str:
    return Cell("unknown", "warn") if row.price_micros is None else dollars(row.price_micros)


@dataclass(frozen=True, slots=True)
class TriedOfferRow:
    """
    An offer of a fleet, in the order in which they are tried.

    `zone` is empty where the cloud chooses it, `price_micros` null where it is unknown. `refused_at_ms` is when the cloud
    refused it last and `problem` why; it is not asked for again before `asked_again_at_ms`.
    """

    instance_type: str
    region: str
    zone: str
    spot: bool
    price_micros: int | None
    refused_at_ms: int | None
    problem: str
    asked_again_at_ms: int | None


def tried_offer_rows(offers: Sequence[TriedOffer]) -> tuple[TriedOfferRow, ...]:
    return tuple(
        row_of(
            TriedOfferRow,
            one,
            instance_type=one.terms["instance_type"],
            region=one.terms["region"],
            zone=one.terms.get("zone", ""),
            spot=bool(one.terms.get("spot")),
            price_micros=one.terms.get("price_micros"),
            asked_again_at_ms=one.asked_again_at_ms or None,
        )
        for one in offers
    )


def tried_offers_table(rows: Sequence[TriedOfferRow], *, now_ms: int) -> Table:
    columns: tuple[Column[TriedOfferRow], ...] = (
        Column("OFFER", lambda row: row.instance_type),
        Column("PLACE", lambda row: row.zone or row.region),
        Column("KIND", lambda row: "spot" if row.spot else "on-demand"),
        Column("$/H", _price, right=True),
        Column("REFUSED", lambda row: _refused(row, now_ms)),
        Column("ASKED AGAIN", lambda row: _asked_again(row, now_ms)),
        Column("WHY", lambda row: row.problem),
    )
    return make_table(columns, rows)


def _refused(row: TriedOfferRow, now_ms: int) -> Cell | str:
    told = age(row.refused_at_ms, now_ms)
    return Cell(f"{told} ago", "warn") if told else ""


def _asked_again(row: TriedOfferRow, now_ms: int) -> str:
    at_ms = row.asked_again_at_ms
    return "" if at_ms is None or at_ms <= now_ms else moment(at_ms)


def refused_text(offer: Mapping[str, Any], now_ms: int) -> str:
    """
    Write `g5.xlarge in us-east-1, 3m00s ago, not asked for before 2026-11-21T10:26:30Z: no capacity`.

    `offer` is as `model.offers.offer_facts` says it.
    """
    return (
        f"{offer_text(offer)}, {age(offer['refused_at_ms'], now_ms)} ago,"
        f" not asked for before {moment(offer['asked_again_at_ms'])}: {offer['problem']}"
    )


def asked_again_text(fleet: str, refused: Sequence[TriedOffer], *, hosts: int) -> str:
    """Say which offers a fleet asks for again because a person wants it, and how many hosts it lacks."""
    if not refused:
        return f"fleet {fleet}: no offer was refused in the last {span(REFUSED_MS)}"
    names = ", ".join(offer_text(one.terms) for one in refused)
    rest = f", for {counted(hosts, 'host')}" if hosts else " when the fleet needs a host"
    return f"fleet {fleet}: {names} may be asked for again{rest}"


def apply_again_text(none: NoOffer, now_ms: int) -> str:
    """Say what a person does about a fleet that has no offer left and does not wait."""
    free_ms = min((one.asked_again_at_ms for one in none.refused), default=0)
    again = "apply again"
    if free_ms > now_ms:
        again += f" after {moment(free_ms)}, or sooner after {_retry(none)}"
    return (
        f"{again}; else declare more types, zones or regions, or have the fleet wait with"
        " `retry: {on: [no-capacity], duration: 1h}`"
    )


def _retry(none: NoOffer) -> str:
    return f"`fleetform fleet retry {none.refused[0].fleet}`"


def no_offer_left(none: NoOffer) -> str:
    """Say which offers a fleet has tried, why each was refused, and for how long it waits if it does."""
    tried = "; ".join(f"{offer_text(one.terms)}: {one.problem}" for one in none.refused)
    if none.next_ms is None:
        return f"no offer is left: {tried}"
    limit = "" if none.until_ms is None else f" until {moment(none.until_ms)}"
    when = f"asked again at {moment(none.next_ms)}, or at once with {_retry(none)}"
    return f"waiting for capacity{limit}, {when}: {tried}"


def priced_on(days: Mapping[str, date]) -> str:
    """Say of which day the prices of each backend are: `prices of 2026-07-20 (aws), an hour`."""
    named = ", ".join(f"{days[name]} ({name})" for name in sorted(days))
    return f"prices of {named}, an hour"


def unknown_prices(command: str) -> str:
    """Say how prices become known that no catalogue has."""
    return f"the catalogue has prices on demand in us-east-1; `{command}` asks AWS for the unknown ones"


def several_hosts(name: str, nodes: int) -> str:
    """Say that the prices are of one host where a run needs several."""
    return f"{name} needs {nodes} hosts; prices are of one host"


def not_shown(count: int) -> str:
    """Say how many offers a limit has cut off."""
    return f"{counted(count, 'more offer')}; --limit shows them"
