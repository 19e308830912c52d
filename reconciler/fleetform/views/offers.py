"""Offers of clouds as people read them, and why none is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from fleetform.model.figures import counted, dollars, size
from fleetform.providers.offers.catalogue import Offer
from fleetform.views.table import Cell, Column, Table, make_table


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


def _price(row: Offer) -> Cell | str:
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


def priced_on(days: Mapping[str, date], rows: Sequence[Offer]) -> str:
    """Say of which day the prices of each backend are: `prices of 2026-07-20 (aws), an hour`."""
    named = ", ".join(f"{days[name]} ({name})" for name in sorted({row.backend for row in rows}))
    return f"prices of {named}, an hour"


def several_hosts(name: str, nodes: int) -> str:
    """Say that the prices are of one host where a run needs several."""
    return f"{name} needs {nodes} hosts; prices are of one host"


def not_shown(count: int) -> str:
    """Say how many offers a limit has cut off."""
    return f"{counted(count, 'more offer')}; --limit shows them"
