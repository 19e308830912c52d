"""Offers of clouds as people read them, and why none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from fleetform.model.figures import counted, dollars, size
from fleetform.model.offers import REFUSED_MS, NoOffer, TriedOffer, offer_text
from fleetform.providers.offers.catalogue import Offer
from fleetform.views.moments import age, moment
from fleetform.views.table import Cell, Column, Table, make_table, row_of


def offers_table(rows: Sequence[Offer]) -> Table:
    columns: tuple[Column[Offer], ...] = (
        Column("BACKEND", lambda row: row.backend),
        Column("REGION", lambda row: row.region),
        Column("TYPE", lambda row: row.instance_type),
        Column("CPU", lambda row: str(row.cpu_count), right=True),
        Column("ARCH", lambda row: row.arch),
        Column("MEMORY", lambda row: size(row.memory_bytes), right=True),
        Column("GPU", _gpu, optional=True),
        Column("KIND", lambda row: "spot" if row.spot else "on-demand"),
        Column("$/H", _price, right=True),
    )
    return make_table(columns, rows)


def _gpu(row: Offer) -> str:
    if not row.gpu_count:
        return ""
    return f"{row.gpu_name}:{size(row.gpu_memory_bytes)}:{row.gpu_count}"


def _price(row: Offer | TriedOfferRow) -> Cell | str:
    return Cell("unknown", "warn") if row.price_micros is None else dollars(row.price_micros)


# In the order of the sentence: what a user can change most easily stands last.
_REASONS = {
    "backend": "of another backend",
    "region": "in another region",
    "type": "of another type",
    "arch": "of another architecture",
    "gpu": "without the GPUs",
    "cpu": "without the CPUs",
    "memory": "without the memory",
    "price": "above the highest price",
    "unknown price": "of unknown price, which a highest price excludes",
}


def no_offer(reasons: Mapping[str, int], spot: str) -> str:
    """
    Say why no offer is left: `no offer on demand: 1361 without the GPUs`.

    `spot` is the spot policy, which excludes half of the offers in silence.
    """
    told = [f"{reasons[name]} {text}" for name, text in _REASONS.items() if reasons.get(name)]
    kind = {"on-demand": " on demand", "spot": " of spot instances"}.get(spot, "")
    return f"no offer{kind}: {', '.join(told)}"


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
            asked_again_at_ms=None if one.refused_at_ms is None else one.refused_at_ms + REFUSED_MS,
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


def no_offer_left(none: NoOffer) -> str:
    """Say which offers a fleet has tried, why each was refused, and for how long it waits if it does."""
    tried = "; ".join(f"{offer_text(one.terms)}: {one.problem}" for one in none.refused)
    if none.next_ms is None:
        return f"no offer is left: {tried}"
    limit = "" if none.until_ms is None else f" until {moment(none.until_ms)}"
    return f"waiting for capacity{limit}, asked again at {moment(none.next_ms)}: {tried}"


def priced_on(days: Mapping[str, date]) -> str:
    """Say of which day the prices of each backend are: `prices of 2026-07-20 (aws), an hour`."""
    named = ", ".join(f"{days[name]} ({name})" for name in sorted(days))
    return f"prices of {named}, an hour"


def several_hosts(name: str, nodes: int) -> str:
    """Say that the prices are of one host where a run needs several."""
    return f"{name} needs {nodes} hosts; prices are of one host"


def not_shown(count: int) -> str:
    """Say how many offers a limit has cut off."""
    return f"{counted(count, 'more offer')}; --limit shows them"
