"""What was found of the tools of clouds, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from fleetform.providers.contract.tools import ToolCheck
from fleetform.views.table import Cell, Column, Table, make_table

__all__ = ["doctor_table"]


def doctor_table(rows: Iterable[ToolCheck]) -> Table:
    columns: tuple[Column[ToolCheck], ...] = (
        Column("NEEDED", lambda row: row.name),
        Column("STATE", _state),
        Column("FOUND", lambda row: row.text),
    )
    return make_table(columns, rows)


def _state(row: ToolCheck) -> Cell:
    return Cell("ok", "good") if row.is_ok else Cell("problem", "bad")
