"""What fleets on clouds and the runs on them have cost so far, and what they cost an hour now."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleetform.model import figures
from fleetform.model.cost import WHOLE, BoughtHost, Spending
from fleetform.model.hourly_cost import HourlyCost
from fleetform.model.volume import disk_of
from fleetform.spec.names import natural_order, split_element
from fleetform.views.table import Cell, Column, Table, make_table

if TYPE_CHECKING:
    from fleetform.model.live import Live

__all__ = ["CostRow", "cost_rows", "cost_table", "disks_text", "total_text"]

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class CostRow:
    """
    A fleet, or a run on hosts of clouds.

    `time_ms` is the sum over its hosts: of the time in which they existed, or in which a run's jobs ran on them. `spent_micros` is the cost
    of this time in micro-dollars, without `unpriced_ms` of it on hosts whose price is unknown. `hourly_micros` is
    what it costs an hour now, without `unpriced_hosts`. A run has its share of each host.
    """

    kind: str
    name: str
    hosts: int
    time_ms: int
    spent_micros: int
    unpriced_ms: int
    hourly_micros: int
    unpriced_hosts: int


@dataclass(frozen=True, slots=True)
class _Stretch:
    kind: str
    name: str
    host: BoughtHost
    begin_ms: int
    end_ms: int | None
    share_millis: int


def cost_rows(spending: Spending, *, name: str | None, now_ms: int) -> tuple[CostRow, ...]:
    """
    Make a row for each fleet, then one for each run.

    Args:
        spending: What the ledger has.
        name: Of a fleet or run, or of a sweep or array: then its elements have a row each; None: everything, a sweep or
            array as one row.
        now_ms: Until when what exists has cost.
    """
    found: dict[tuple[str, str], list[_Stretch]] = {}
    for one in _stretches(spending, name):
        found.setdefault((one.kind, one.name), []).append(one)
    order = sorted(found, key=lambda key: (key[0], natural_order(key[1])))
    return tuple(_row(*key, found[key], now_ms) for key in order)


def cost_table(rows: Iterable[CostRow]) -> Table:
    columns: tuple[Column[CostRow], ...] = (
        Column("KIND", lambda row: row.kind),
        Column("NAME", lambda row: row.name),
        Column("HOSTS", lambda row: str(row.hosts), right=True),
        Column("TIME", lambda row: figures.span(row.time_ms), right=True),
        Column("SPENT", _spent, right=True),
        Column("$/H NOW", _hourly, right=True),
    )
    return make_table(columns, rows)


def total_text(rows: Iterable[CostRow]) -> str:
    """Sum up the fleets, and say what the sums leave out; runs are a part of them. Empty where there are no two fleets."""
    fleets = [row for row in rows if row.kind == "fleet"]
    if len(fleets) < 2:
        return ""
    spent = _spent_text(
        sum(row.spent_micros for row in fleets), sum(row.unpriced_ms for row in fleets)
    )
    hourly = HourlyCost(
        sum(row.hourly_micros for row in fleets), sum(row.unpriced_hosts for row in fleets)
    )
    return f"all fleets: {spent} so far, {hourly} now"


def disks_text(rows: Iterable[CostRow], live: Live) -> str:
    """Say which disks cost something that is not counted; empty where there is none."""
    names = sorted(
        f"{key.name} ({disk.size_gb}GB)"
        for key, row in live.resources.items()
        if key.kind == "volume" and not row.archived
        for disk in (disk_of(row.outputs),)
        if disk is not None and not disk.source
    )
    found = ["root disks of hosts"] if any(row.kind == "fleet" for row in rows) else []
    found += [f"volume {', '.join(names)}"] if names else []
    return f"not counted, of unknown price: {'; '.join(found)}" if found else ""


def _stretches(spending: Spending, name: str | None) -> Iterable[_Stretch]:
    hosts: Mapping[str, BoughtHost] = {one.uid: one for one in spending.hosts}
    for host in spending.hosts:
        if name in {None, host.fleet}:
            yield _Stretch("fleet", host.fleet, host, host.created_at_ms, host.ended_at_ms, WHOLE)
    for use in spending.uses:
        parent = split_element(use.run)[0]
        if name in {None, parent, use.run}:
            called = parent if name is None else use.run
            host, share = hosts[use.host_uid], use.share_millis
            yield _Stretch("run", called, host, use.started_at_ms, use.ended_at_ms, share)


def _row(kind: str, name: str, stretches: Iterable[_Stretch], now_ms: int) -> CostRow:
    time_ms = spent = unpriced_ms = hourly = 0
    unpriced_hosts, hosts = set(), set()
    for one in stretches:
        span_ms = max(0, (now_ms if one.end_ms is None else one.end_ms) - one.begin_ms)
        price = one.host.price_micros
        time_ms += span_ms
        hosts.add(one.host.uid)
        if price is None:
            unpriced_ms += span_ms
            if one.end_ms is None:
                unpriced_hosts.add(one.host.uid)
            continue
        spent += price * span_ms * one.share_millis // (_HOUR_MS * WHOLE)
        if one.end_ms is None:
            hourly += price * one.share_millis // WHOLE
    return CostRow(kind, name, len(hosts), time_ms, spent, unpriced_ms, hourly, len(unpriced_hosts))


def _spent(row: CostRow) -> Cell | str:
    text = _spent_text(row.spent_micros, row.unpriced_ms)
    return Cell(text, "warn") if row.unpriced_ms else text


def _spent_text(micros: int, unpriced_ms: int) -> str:
    """Write `$9.56 + 2h00m at an unknown price`."""
    if not unpriced_ms:
        return figures.dollars(micros)
    unknown = f"{figures.span(unpriced_ms)} at an unknown price"
    return f"{figures.dollars(micros)} + {unknown}" if micros else unknown


def _hourly(row: CostRow) -> Cell | str:
    if not row.unpriced_hosts:
        return figures.dollars(row.hourly_micros) if row.hourly_micros else ""
    return Cell(str(HourlyCost(row.hourly_micros, row.unpriced_hosts)), "warn")
