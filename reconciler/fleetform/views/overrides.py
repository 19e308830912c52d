"""
Overrides as people read them: a sentence each, and a row each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from fleetform.model.override import Override, PastOverride, holding
from fleetform.views.lines import printable
from fleetform.views.moments import moment
from fleetform.views.table import Cell, Column, Table, make_table, row_of


def until_text(override: Override) -> str:
    """Write ` until 2027-01-02T00:00:00Z`; empty for an override without an end."""
    return "" if override.until_ms is None else f" until {moment(override.until_ms)}"


def in_force(override: Override) -> str:
    """Say what is in force, by whom, why, and until when; a terminal obeys nothing in it."""
    until = until_text(override).strip() or "until it is lifted"
    return f"in force: {printable(override.sentence)} ({until})"


def in_force_lines(overrides: Iterable[Override], now_ms: int) -> tuple[str, ...]:
    """One sentence for each that is in force, by number."""
    return tuple(in_force(one) for one in holding(overrides, now_ms))


def in_force_notice(overrides: Iterable[Override]) -> str:
    """
    Say in one line how many overrides are in force and which command lists them; empty without any.

    Every plan shows it, so it has no reasons: a changed plan must not begin below a page of them.
    """
    match tuple(overrides):
        case ():
            return ""
        case (one,):
            title = f"{printable(one.title)}{until_text(one)}"
            return f"1 override in force: {title}; `fleetform status` lists it"
        case several:
            kinds = Counter(one.kind.value for one in several)
            counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            return (
                f"{len(several)} overrides in force: {counts};"
                " `fleetform emergency list` lists them"
            )


@dataclass(frozen=True, slots=True)
class OverrideRow:
    """
    One override: in force, expired or lifted.

    `state` is `in force`, `over` (it has expired) or `lifted`. Times are Unix milliseconds.
    """

    number: int
    kind: str
    target: str
    state: str
    who: str
    reason: str
    since_ms: int
    until_ms: int | None
    lifted_at_ms: int | None
    lifted_by: str


def override_rows(past: Iterable[PastOverride], *, now_ms: int) -> tuple[OverrideRow, ...]:
    """One row each, in the order they come."""
    return tuple(row_of(OverrideRow, one.override, one, state=_state(one, now_ms)) for one in past)


def overrides_table(rows: Iterable[OverrideRow]) -> Table:
    columns: tuple[Column[OverrideRow], ...] = (
        Column("NUMBER", lambda row: str(row.number), right=True),
        Column("WHAT", lambda row: row.kind),
        Column("OF", lambda row: row.target),
        Column("STATE", _state_cell),
        Column("UNTIL", lambda row: "" if row.until_ms is None else moment(row.until_ms)),
        Column("WHO", lambda row: row.who),
        Column("REASON", lambda row: row.reason),
    )
    return make_table(columns, rows)


def _state_cell(row: OverrideRow) -> Cell:
    if row.state == "lifted":
        return Cell(f"lifted by {row.lifted_by}", "dim")
    return Cell(row.state, "warn" if row.state == "in force" else "dim")


def _state(one: PastOverride, now_ms: int) -> str:
    if one.lifted_at_ms is not None:
        return "lifted"
    return "in force" if one.override.holds_at(now_ms) else "over"
