"""Agents that bear the environment's uid: found in the world, whatever the ledger says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fleetform.providers.contract.observed import InstanceSeen
from fleetform.spec.names import natural_order
from fleetform.views.table import Cell, Column, Table, make_table


@dataclass(frozen=True, slots=True)
class AgentRow:
    """
    One agent.

    `alive` says whether it answers now: one without work ends itself, and is started again when
    there is some. `ledger_id` and `epoch` are of the ledger it obeys, empty and 0 before the first.
    """

    name: str
    fleet: str
    uid: str
    alive: bool
    ledger_id: str
    epoch: int


def agent_rows(seen: Sequence[InstanceSeen]) -> tuple[AgentRow, ...]:
    """Make the rows in order of name."""
    return tuple(
        AgentRow(one.name, one.fleet, one.uid, one.alive, one.ledger_id, one.epoch)
        for one in sorted(seen, key=lambda one: (one.fleet, natural_order(one.name)))
    )


def agents_table(rows: Iterable[AgentRow]) -> Table:
    columns: tuple[Column[AgentRow], ...] = (
        Column("AGENT", lambda row: row.name),
        Column("FLEET", lambda row: row.fleet),
        Column("ANSWERS", lambda row: Cell("yes", "good") if row.alive else Cell("no", "dim")),
        Column("EPOCH", lambda row: str(row.epoch) if row.epoch else "", right=True),
        Column("UID", lambda row: Cell(row.uid, "dim")),
    )
    return make_table(columns, rows)
