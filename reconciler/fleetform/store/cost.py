"""Reads how long hosts of clouds existed, and which jobs ran on them; of other hosts the ledger knows no purchase."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from fleetform.model.cost import BoughtHost, HostUse, Spending, share_millis
from fleetform.model.hourly_cost import HourlyCost

if TYPE_CHECKING:
    from fleetform.store.statements import Statements

__all__ = ["read_hourly_costs", "read_spending"]

_HOSTS = (
    "SELECT uid, fleet, endpoint, created_at_ms, ended_at_ms FROM instances"
    " WHERE created_at_ms IS NOT NULL ORDER BY fleet, number, created_at_ms"
)

_EXISTING = (
    "SELECT fleet, endpoint FROM instances WHERE created_at_ms IS NOT NULL AND ended_at_ms IS NULL"
    " ORDER BY fleet"
)

# A job that was lost has no end of its own: that of its attempt, or of its host, counts.
_USES = (
    "SELECT r.name, i.uid, i.sharing, j.blocks, i.blocks, j.cpu_millicores, i.cpu_millicores,"
    " j.memory_bytes, i.memory_bytes, j.gpus_count, i.gpus, j.started_at_ms,"
    " coalesce(j.finished_at_ms, a.finished_at_ms, i.ended_at_ms)"
    " FROM jobs j JOIN instances i ON i.uid = j.instance_uid"
    " JOIN attempts a ON a.run_uid = j.run_uid AND a.number = j.attempt"
    " JOIN runs r ON r.uid = j.run_uid"
    " WHERE i.created_at_ms IS NOT NULL AND j.started_at_ms IS NOT NULL"
    " ORDER BY r.number, j.attempt, j.rank"
)


def read_spending(connection: Statements) -> Spending:
    """Read all instances of clouds that were ever created, and the jobs that started on them."""
    hosts = tuple(
        BoughtHost(uid, fleet, json.loads(endpoint).get("price_micros"), created, ended)
        for uid, fleet, endpoint, created, ended in connection.execute(_HOSTS)
    )
    return Spending(hosts, tuple(_uses(connection)))


def read_hourly_costs(connection: Statements) -> dict[str, HourlyCost]:
    """Sum up what the instances of clouds that exist cost an hour, by fleet."""
    found: dict[str, HourlyCost] = {}
    for fleet, endpoint in connection.execute(_EXISTING):
        price = json.loads(endpoint).get("price_micros")
        cost = HourlyCost(unknown_hosts=1) if price is None else HourlyCost(price)
        found[fleet] = found.get(fleet, HourlyCost()).plus(cost)
    return found


def _uses(connection: Statements) -> Iterator[HostUse]:
    for row in connection.execute(_USES):
        run, uid, sharing, blocks, all_blocks, cpu, all_cpu, memory, all_memory = row[:9]
        gpus, all_gpus, started, ended = row[9:]
        amounts = [(cpu, all_cpu), (memory, all_memory), (gpus, len(json.loads(all_gpus or "[]")))]
        if sharing == "blocks":
            amounts = [(blocks, all_blocks)]
        yield HostUse(run, uid, share_millis(sharing, amounts), started, ended)
