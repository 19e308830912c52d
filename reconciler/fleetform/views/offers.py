"""Offers of clouds as people read them, and why none is left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fleetform.model.figures import counted, dollars, size
from fleetform.providers.offers.catalogue import Offer
from fleetform.views.table import Cell, Column, Table, make_table, row_of


@dataclass(frozen=True, slots=True)
class OfferRow:
    """
    One instance type in a region, on demand or spot.

    `price_micros` are micro-dollars an hour for one host; null: unknown. Sizes in bytes;
    `gpu_memory_bytes` is that of one GPU.
    """

    backend: str
    region: str
    instance_type: str
    spot: bool
    cpu_count: int
    arch: str
    memory_bytes: int
    gpu_count: int
    gpu_vendor: str
    gpu_name: str
    gpu_memory_bytes: int
    price_micros: int | None


def offer_rows(offers: Iterable[Offer]) -> list[OfferRow]:
    return [row_of(OfferRow, offer) for offer in offers]


def offers_table(rows: Sequence[OfferRow]) -> Table:
    columns: tuple[Column[OfferRow], ...] = (
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


def _gpu(row: OfferRow) -> str:
    if not row.gpu_count:
        return ""
    return f"{row.gpu_name}:{size(row.gpu_memory_bytes)}:{row.gpu_count}"


def _price(row: OfferRow) -> Cell | str:
    return Cell("unknown", "warn") if row.price_micros is None else dollars(row.price_micros)


# In the order in which they are told: what can be changed most easily last.
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


def several_hosts(name: str, nodes: int) -> str:
    """Say that the prices are of one host where a run needs several."""
    return f"{name} needs {nodes} hosts; prices are of one host"


def not_shown(count: int) -> str:
    """Say how many offers a limit has cut off."""
    return f"{counted(count, 'more offer')}; --limit shows them"
