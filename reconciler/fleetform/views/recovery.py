"""What a rebuild of the ledger found: a line a fleet, host, volume and run."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.model.recovery import Difference, Recovered
from fleetform.views.table import Cell, Column, Table, make_table

_TONES = {"unknown": "warn", "lost": "warn", "failed": "bad", "done": "good", "ready": "good"}


def recovered_table(rows: Iterable[Recovered]) -> Table:
    columns: tuple[Column[Recovered], ...] = (
        Column("KIND", lambda row: row.kind),
        Column("NAME", lambda row: row.name),
        Column("STATE", lambda row: Cell(row.state, _TONES.get(row.state, "plain"))),
        Column("FOUND", lambda row: row.found),
        Column("RESULT", lambda row: Cell(row.note, "dim"), optional=True),
    )
    return make_table(columns, rows)


def differences_table(rows: Iterable[Difference]) -> Table:
    columns: tuple[Column[Difference], ...] = (
        Column("RESOURCE", lambda row: row.resource),
        Column("IN THE LEDGER", lambda row: row.here),
        Column("FROM HOSTS", lambda row: Cell(row.rebuilt, "warn")),
    )
    return make_table(columns, rows)
