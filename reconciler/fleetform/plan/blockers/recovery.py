"""The world remembers another ledger: nothing starts, stops or goes until that is settled."""

from __future__ import annotations

from fleetform.model.live import LedgerStatus
from fleetform.model.plan import HeldBy
from fleetform.plan.draft import Sheet


def hold_while_recovering(sheet: Sheet) -> None:
    if sheet.live.status is not LedgerStatus.RECOVERING:
        return
    detail = "; ".join(sheet.live.notes) or "hosts know a newer ledger than this one"
    for key in list(sheet.changes):
        sheet.hold(key, HeldBy.RECOVERING, detail, "fleetform state rebuild")


def recovery_warnings(sheet: Sheet) -> tuple[str, ...]:
    """Say that the ledger is recovering also where nothing differs: it may be wrong about that."""
    if sheet.live.status is not LedgerStatus.RECOVERING:
        return ()
    why = f": {sheet.live.notes[0]}" if sheet.live.notes else ""
    return (f"The ledger is recovering{why}. `fleetform state rebuild` asks the hosts.",)
